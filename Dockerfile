# A server of studies: docker compose up, see docs/service.md.
FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/polyarm \
    && /opt/polyarm/bin/pip install --no-cache-dir --constraint constraints.txt '.[service,postgres,parquet]'

FROM python:3.12-slim
RUN useradd --create-home --uid 1000 polyarm
COPY --from=build /opt/polyarm /opt/polyarm
RUN install --directory --owner polyarm /opt/kernels
USER polyarm
WORKDIR /home/polyarm
ENV PATH=/opt/polyarm/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/opt/kernels
# For processors like this one; on another the first start compiles once more.
RUN polyarm warm
# Studies without PostgreSQL: a file here.
VOLUME /home/polyarm
EXPOSE 8765
HEALTHCHECK --interval=10s --timeout=5s --start-period=180s CMD \
    python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8765/healthz', timeout=4)"
ENTRYPOINT ["polyarm"]
CMD ["serve", "--host", "0.0.0.0", "--log-json"]
