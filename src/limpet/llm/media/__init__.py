"""Sound and pictures over OpenAI-compatible endpoints: transcription, speech, images."""
