"""The API for other programs: OpenAI's and Anthropic's own, so that their clients work unmodified."""
