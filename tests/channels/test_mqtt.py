"""Beside the contract: what is MQTT's own, against mosquitto."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import queue
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiomqtt
import paho.mqtt.client as paho
import pytest

from limpet.channels.mqtt.channel import MqttChannel
from limpet.errors import ChannelError, ConfigError, NotReadyError, RefusedError
from limpet.types.envelope import Address
from tests.channel.harness import RecordingDesk, piece, running
from tests.channel.mqtt import PASSWORD, Broker, MqttHarness, channel
from tests.channel.servers import Relay

ANN = Address("mqtt", "main", "ann")
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "mqtt_device" / "main.py"


def play(folder: Path, scene: Callable[[Broker, MqttChannel, RecordingDesk], Awaitable[None]]) -> None:
    """The scene with the channel at work."""

    async def whole() -> None:
        async with Broker(folder / "broker") as broker:
            desk = RecordingDesk()
            one = channel(broker.port, folder)
            async with running(one, desk):
                await scene(broker, one, desk)

    asyncio.run(asyncio.wait_for(whole(), 30))


async def heard(client: aiomqtt.Client) -> tuple[str, bytes]:
    """The next message of a subscription."""
    async with asyncio.timeout(10):
        async for message in client.messages:
            assert isinstance(message.payload, bytes)
            return str(message.topic), message.payload
    raise AssertionError


def test_a_plain_text_is_a_message_and_is_answered_in_plain_text(tmp_path: Path) -> None:
    async def scene(broker: Broker, one: MqttChannel, desk: RecordingDesk) -> None:
        async with broker.device("ann") as device:
            await device.subscribe("limpet/ann/out", qos=1)
            await device.publish("limpet/ann/in", "warm genug? 你好", qos=1)
            (arrival,) = await desk.got(1)
            assert (arrival.text, arrival.sender, arrival.address) == ("warm genug? 你好", "ann", ANN)
            assert await one.send(piece(ANN, "Ja, 21 °C")) == ""
            assert await heard(device) == ("limpet/ann/out", "Ja, 21 °C".encode())

    play(tmp_path, scene)


def test_json_without_a_text_is_the_text_and_is_known_by_its_id(tmp_path: Path) -> None:
    async def scene(broker: Broker, _: MqttChannel, desk: RecordingDesk) -> None:
        await broker.publish("ann", '{"id": 7, "celsius": 21.5}')
        (arrival,) = await desk.got(1)
        assert (arrival.text, arrival.event) == ('{"id": 7, "celsius": 21.5}', "ann/7")

    play(tmp_path, scene)


def test_the_same_id_of_two_devices_is_two_events(tmp_path: Path) -> None:
    async def scene(broker: Broker, _: MqttChannel, desk: RecordingDesk) -> None:
        await broker.publish("ann", '{"id": "1", "text": "a", "time": 1700000000, "reply_to": "q"}')
        await broker.publish("bob", '{"id": "1", "text": "b"}')
        first, second = await desk.got(2)
        assert first.event != second.event
        assert (first.sent, first.reply_to) == (1_700_000_000_000, "q")

    play(tmp_path, scene)


def test_what_is_no_text_is_left_out_and_holds_nothing_up(tmp_path: Path) -> None:
    async def scene(broker: Broker, _: MqttChannel, desk: RecordingDesk) -> None:
        for payload in (b"\xff\xfe\x00", b"", b"   ", b"x" * 1_000_001, b'{"id": "1", "text": ""}'):
            await broker.publish("ann", payload)
        await broker.publish("ann", "after", qos=0)
        assert [one.text for one in await desk.got(1)] == ["after"]

    play(tmp_path, scene)


def test_what_a_topic_retains_is_not_new(tmp_path: Path) -> None:
    async def whole() -> None:
        async with Broker(tmp_path / "broker") as broker:
            await broker.publish("ann", "old", retain=True)
            desk = RecordingDesk()
            async with running(channel(broker.port, tmp_path), desk):
                await broker.publish("ann", "new", retain=True)
                assert [one.text for one in await desk.got(1)] == ["new"]

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_what_was_said_while_we_were_away_arrives_in_order(tmp_path: Path) -> None:
    async def whole() -> None:
        async with Broker(tmp_path / "broker") as broker:
            await broker.publish("ann", "before the first start")
            async with running(channel(broker.port, tmp_path), RecordingDesk()):
                pass
            for number in range(30):
                await broker.publish("ann", f"number {number}")
            desk = RecordingDesk()
            async with running(channel(broker.port, tmp_path), desk):
                arrivals = await desk.got(30)
                assert [one.text for one in arrivals] == [f"number {number}" for number in range(30)]
                assert len({one.event for one in arrivals}) == 30

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_what_the_broker_repeats_is_known_again_without_an_id(tmp_path: Path) -> None:
    async def whole() -> None:
        async with Broker(tmp_path / "broker") as broker:
            stuck, desk = RecordingDesk(), RecordingDesk()
            stuck.gate.clear()
            async with running(channel(broker.port, tmp_path), stuck):
                await broker.publish("ann", "keep me")
                await stuck.until(lambda: bool(stuck.attempts))
            async with running(channel(broker.port, tmp_path), desk):
                await broker.publish("ann", "keep me")
                first, second = await desk.got(2)
                assert [first.event] == stuck.attempts
                assert second.event != first.event

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_our_state_can_be_read_at_any_time(tmp_path: Path) -> None:
    async def whole() -> None:
        async with Broker(tmp_path / "broker") as broker, Relay(broker.port) as relay:
            async with broker.device("ann") as device:
                await device.subscribe("limpet/status", qos=1)
                async with running(channel(relay.port, tmp_path), RecordingDesk()):
                    assert await heard(device) == ("limpet/status", b"online")
                    relay.cut()
                    assert await heard(device) == ("limpet/status", b"offline")
                    assert await heard(device) == ("limpet/status", b"online")
                assert await heard(device) == ("limpet/status", b"offline")

    asyncio.run(asyncio.wait_for(whole(), 30))


@pytest.mark.parametrize("settings", [{"user": "nobody"}, {"user": ""}])
def test_a_wrong_account_is_refused(tmp_path: Path, settings: dict[str, str]) -> None:
    async def whole() -> None:
        async with Broker(tmp_path / "broker") as broker:
            with pytest.raises(RefusedError, match="user and password") as caught:
                await channel(broker.port, tmp_path, **settings).run(RecordingDesk())
            assert PASSWORD not in str(caught.value)

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_an_encrypted_broker_is_trusted_by_its_certificate_only(tmp_path: Path) -> None:
    async def whole() -> None:
        async with Broker(tmp_path / "broker", encrypted=True) as broker:
            desk = RecordingDesk()
            async with running(channel(broker.port, tmp_path, host="localhost", tls=True, ca=broker.ca), desk):
                pass
            with pytest.raises(ChannelError, match="certificate"):
                await channel(broker.port, tmp_path, host="localhost", tls=True).run(desk)
            with pytest.raises(RefusedError, match="`ca`"):
                await channel(broker.port, tmp_path, host="localhost", tls=True, ca="/nowhere").run(desk)

    asyncio.run(asyncio.wait_for(whole(), 30))


@pytest.mark.parametrize("device", ["", "a/b", "+", "#", "a\0", "x" * 2_000])
def test_what_cannot_be_a_device_is_not_sent_to(tmp_path: Path, device: str) -> None:
    with pytest.raises(RefusedError):
        asyncio.run(channel(1, tmp_path).send(piece(Address("mqtt", "main", device), "hi")))


def test_while_the_broker_is_gone_nothing_is_tried(tmp_path: Path) -> None:
    async def whole() -> None:
        async with MqttHarness(tmp_path) as harness:
            one, desk = harness.make(), RecordingDesk()
            async with running(one, desk):
                await harness.__aexit__()
                await desk.until(lambda: desk.states[-1].startswith("down"))
                with pytest.raises(NotReadyError):
                    await one.send(piece(ANN, "hi"))

    asyncio.run(asyncio.wait_for(whole(), 30))


@pytest.mark.parametrize(
    "settings",
    [
        {"host": ""},
        {"topic_in": "limpet/in"},
        {"topic_in": "limpet/+/{device}"},
        {"topic_in": "{device}/{device}"},
        {"topic_in": "a{device}/in"},
        {"topic_in": "limpet/{device}/out"},
        {"topic_in": "limpet/out/{device}", "topic_out": "limpet/{device}/x"},
        {"topic_in": "limpet/{device}"},
    ],
)
def test_topics_that_make_no_sense_are_told(tmp_path: Path, settings: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        channel(1, tmp_path, **settings)


class Umqtt:
    """What `umqtt.simple` has, as far as the example uses it, on the library of this machine."""

    def __init__(self, port: int) -> None:
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, "ann", clean_session=False)
        self._client.username_pw_set("ann", PASSWORD)
        self._given: queue.Queue[paho.MQTTMessage] = queue.Queue()
        self._client.on_message = lambda _client, _data, message: self._given.put(message)
        self._port = port
        self.failures = 1

    def set_callback(self, callback: Callable[[bytes, bytes], None]) -> None:
        self._callback = callback

    def connect(self, clean_session: bool = True) -> None:
        if not self._client.is_connected():
            self._client.connect("127.0.0.1", self._port)
            self._client.loop_start()

    def subscribe(self, topic: bytes, qos: int = 0) -> None:
        self._client.subscribe(topic.decode(), qos)

    def publish(self, topic: bytes, payload: bytes, retain: bool = False, qos: int = 0) -> None:
        self._client.publish(topic.decode(), payload, qos, retain).wait_for_publish(10)
        if self.failures:
            self.failures -= 1
            raise OSError("the answer got lost")

    def wait_msg(self) -> None:
        message = self._given.get(timeout=10)
        self._callback(message.topic.encode(), message.payload)

    def shut(self) -> None:
        self._client.disconnect()
        self._client.loop_stop()


def test_the_example_of_a_device_talks_with_us(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("mqtt_device", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    async def scene(broker: Broker, one: MqttChannel, desk: RecordingDesk) -> None:
        client, answers = Umqtt(broker.port), list[str]()
        talk = example.Talk(client, "ann", answers.append)
        with contextlib.ExitStack() as stack:
            stack.callback(client.shut)
            await asyncio.to_thread(talk.connect)
            await asyncio.to_thread(talk.say, "lamp?", 2, 0)
            first, repeated = await desk.got(2)
            assert (first.text, first.event) == ("lamp?", repeated.event)
            await one.send(piece(first.address, "on"))
            await asyncio.to_thread(client.wait_msg)
        assert answers == ["on"]

    play(tmp_path, scene)
