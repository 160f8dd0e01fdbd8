"""A button and a lamp that talk with Limpet over MQTT. MicroPython with `umqtt.simple`, on an ESP32 for example.

Copy it to the board as `main.py`, fill in the four names below, and press the button: the agent is asked something, and
its answer turns the lamp on or off. Nothing is lost: a message is sent again under the same id until the broker has it
(the agent takes one id once), and answers wait at the broker while the board sleeps.
"""

import binascii
import json
import os
import time

WIFI = ("name", "password")
BROKER = "192.168.1.10"
DEVICE = "button-kitchen"
PASSWORD = "of the account DEVICE at the broker"


class Talk:
    """What a device says to the agent, and hears. `client` is an `MQTTClient` of `umqtt.simple`."""

    def __init__(self, client, device, heard):
        self.client = client
        self.topic_in = f"limpet/{device}/in".encode()
        self.topic_out = f"limpet/{device}/out".encode()
        self.boot = binascii.hexlify(os.urandom(4)).decode()
        self.count = 0
        self.heard = heard

    def connect(self):
        self.client.set_callback(self.receive)
        self.client.connect(clean_session=False)
        self.client.subscribe(self.topic_out, qos=1)

    def receive(self, topic, payload):
        if topic == self.topic_out:
            self.heard(payload.decode())

    def say(self, text, tries=5, pause=2):
        """Ask the agent something; raises OSError when the broker cannot be reached at all."""
        self.count += 1
        payload = json.dumps({"id": f"{self.boot}-{self.count}", "text": text}).encode()
        for left in range(tries, 0, -1):
            try:
                self.client.publish(self.topic_in, payload, qos=1)
                return
            except OSError:
                if left == 1:
                    raise
                time.sleep(pause)
                self.again()

    def again(self):
        """Connect anew; gives whether it worked."""
        try:
            self.connect()
        except OSError:
            return False
        return True


def main():
    import network
    from machine import Pin
    from umqtt.simple import MQTTClient

    wlan = network.WLAN(network.STA_IF)
    wlan.active(True)
    wlan.connect(*WIFI)
    while not wlan.isconnected():
        time.sleep(1)

    lamp, button = Pin(2, Pin.OUT), Pin(0, Pin.IN, Pin.PULL_UP)
    client = MQTTClient(DEVICE, BROKER, user=DEVICE, password=PASSWORD, keepalive=60)
    talk = Talk(client, DEVICE, lambda text: lamp.value("on" in text.lower().split()))
    talk.connect()
    beat = time.time()
    while True:
        try:
            client.check_msg()
            if not button.value():
                talk.say("The button was pressed. Should the lamp be on? Answer with the word on or off.")
            if time.time() - beat > 30:
                client.ping()
                beat = time.time()
        except OSError:
            time.sleep(2)
            talk.again()
        time.sleep(0.2)


if __name__ == "__main__":
    main()
