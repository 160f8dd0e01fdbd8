# Limpet's gateway in a container; docs/operations.md says how to run it, and what its sandbox needs.
#   docker build --tag limpet --build-arg EXTRAS=server,web,mcp .
ARG PYTHON=3.13

FROM python:${PYTHON}-slim AS build
# What of pyproject.toml's extras is put in; `server` is what the health check asks.
ARG EXTRAS=server
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/limpet \
    && /opt/limpet/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt ".[${EXTRAS}]"

FROM python:${PYTHON}-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends bubblewrap tini \
    && rm -rf /var/lib/apt/lists/* \
    && mkdir /data \
    && chmod 1777 /data
COPY --from=build /opt/limpet /opt/limpet
# The home lies below the volume, so that `limpet restore` can swap it; /data is writable for any user.
ENV PATH=/opt/limpet/bin:$PATH \
    HOME=/data \
    LIMPET_HOME=/data/limpet \
    PYTHONDONTWRITEBYTECODE=1 \
    container=oci
VOLUME /data
USER 1000:1000
EXPOSE 8790
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import sys, urllib.request as ask; sys.exit(ask.urlopen('http://127.0.0.1:8790/readyz', timeout=4).status != 200)"]
ENTRYPOINT ["tini", "--", "limpet"]
CMD ["gateway"]
