"""Small devices over MQTT 3.1.1 with `aiomqtt` (extra `mqtt`): `topics` who talks where, `payloads` what is said."""
