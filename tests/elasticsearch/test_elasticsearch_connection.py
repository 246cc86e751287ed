"""Servers that are down, not Elasticsearch, too old, closed, or hang: one clear error, in time, without a secret."""

from __future__ import annotations

import asyncio
import base64
import ipaddress
import logging
import os
import ssl
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from elasticsearch_nodes.node import free_ports
from elasticsearch_nodes.proxy import Proxy, once, reply
from elasticsearch_nodes.server import Server

from toolmem.errors import RequestError, StoreClosed, StoreUnavailable, StoreVersionError
from toolmem.store.elastic.indices import SCHEMA_VERSION
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, TOOL, W, append, call, kept_calls, numbers_of


def store_at(hosts: str | list[str], **params: object) -> ElasticsearchStore:
    return ElasticsearchStore(hosts, clock=ManualClock(), embedder=EMBEDDER, number_of_replicas=0, **params)


@asynccontextmanager
async def service(answer: Callable[[web.Request], web.Response]):
    """Something else that listens on loopback."""

    async def handle(request: web.Request) -> web.Response:
        return answer(request)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


async def test_a_server_that_is_down_is_named_with_what_to_do():
    (port,) = free_ports(1)
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match=rf"127\.0\.0\.1:{port} cannot be reached.*hosts"):
        await store_at(f"http://127.0.0.1:{port}", timeout=5).open()
    assert time.monotonic() - begun < 30  # a busy machine takes its time


async def test_a_server_that_hangs_is_given_up_within_the_timeout():
    async def silence(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    hanging = await asyncio.start_server(silence, "127.0.0.1", 0)
    address = "http://{}:{}".format(*hanging.sockets[0].getsockname())
    begun = time.monotonic()
    with pytest.raises(StoreUnavailable, match="did not answer in time"):
        await store_at(address, timeout=1.0).open()
    assert 0.9 < time.monotonic() - begun < 20
    hanging.close()


async def test_what_is_not_elasticsearch_is_told_apart():
    async with service(lambda _: web.json_response({"version": {"number": "2.0"}})) as url:
        with pytest.raises(StoreUnavailable, match="is not Elasticsearch"):
            await store_at(url).open()


@pytest.mark.parametrize("version", ["7.17.3", "8.9.0"])
async def test_a_server_that_is_too_old_is_told_so(version: str):
    def old(request: web.Request) -> web.Response:
        return reply({"nodes": {"x": {"version": version}}, "version": {"number": version}})

    async with service(old) as url:
        with pytest.raises(StoreUnavailable, match=rf"{version}.*8\.13 or newer"):
            await store_at(url).open()


async def test_refused_credentials_name_the_setting_and_never_the_secret(caplog: pytest.LogCaptureFixture):
    seen = []

    def refuse(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization", ""))
        error = {"type": "security_exception", "reason": "unable to authenticate"}
        return reply({"error": error, "status": 401}, 401)

    caplog.set_level(logging.DEBUG)
    async with service(refuse) as url:
        secret_url = url.replace("http://", "http://reader:hunter2secret@")
        for store in (
            store_at(url, basic_auth="reader:hunter2secret"),
            store_at(secret_url),
            store_at(url, api_key="hunter2secret"),
        ):
            with pytest.raises(StoreUnavailable, match="refused the credentials") as refused:
                await store.open()
            assert "hunter2secret" not in f"{refused.value!r} {store.location} {store!r}"
    basic = "Basic " + base64.b64encode(b"reader:hunter2secret").decode()
    assert seen == [basic, basic, "ApiKey hunter2secret"]
    assert "hunter2secret" not in caplog.text
    assert basic.removeprefix("Basic ") not in caplog.text


@pytest.mark.parametrize("hosts", ["localhost:9200", "ftp://x", "", [], "http://", "http://x:99999"])
def test_hosts_that_are_no_urls_are_refused(hosts: str | list[str]):
    with pytest.raises(RequestError, match="hosts"):
        store_at(hosts)


async def test_a_read_only_index_names_the_disk_and_reading_goes_on(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with store_at(server.url, index_prefix=prefix) as store:
        await append(store, 1)
        session = store._open_session()

        async def block(value: bool | None) -> None:
            settings = {"index.blocks.read_only_allow_delete": value}
            await session.connection.call(lambda es: es.indices.put_settings(index=f"{prefix}-*", settings=settings))

        await block(True)
        begun = time.monotonic()
        with pytest.raises(StoreUnavailable, match=r"takes no writes.*Free disk space"):
            await append(store, 2)
        assert time.monotonic() - begun < 25  # it is not asked again until the timeout of 30
        assert numbers_of(await kept_calls(store)) == [1]
        await block(None)
        await append(store, 3)
        assert numbers_of(await kept_calls(store)) == [1, 3]


async def test_an_index_that_somebody_deleted_is_named(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with store_at(server.url, index_prefix=prefix) as store:
        await append(store, 1)
        session = store._open_session()
        await session.connection.call(lambda es: es.indices.delete(index=f"{prefix}-tools-v1"))
        with pytest.raises(StoreUnavailable, match="open the store again"):
            await store.records(W, [TOOL])


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate of 127.0.0.1 that nobody vouches for but itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "toolmem test")])
    now = datetime.now(UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    made = made.add_extension(address, critical=False)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    signed = made.sign(key, hashes.SHA256())
    files = tmp_path / "ca.pem", tmp_path / "key.pem"
    pem = serialization.Encoding.PEM
    files[0].write_bytes(signed.public_bytes(pem))
    plain = serialization.NoEncryption()
    files[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    return files


async def test_tls_is_checked_against_the_authority_that_is_configured(
    server: Server, fresh_prefix: Callable[[], str], certificate: tuple[Path, Path]
):
    prefix = fresh_prefix()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    async with Proxy(server.url, tls=context) as proxy:
        async with store_at(proxy.url, index_prefix=prefix, ca_certs=str(certificate[0])) as store:
            await append(store, 1)
        async with store_at(proxy.url, index_prefix=prefix, verify_certs=False) as store:
            assert numbers_of(await kept_calls(store)) == [1]
        with pytest.raises(StoreUnavailable, match=r"no secure connection.*ca_certs"):
            await store_at(proxy.url, index_prefix=prefix, timeout=5).open()
        with pytest.raises(StoreUnavailable, match=r"cannot be reached.*hosts"):
            await store_at(proxy.url.replace("https:", "http:"), index_prefix=prefix, timeout=5).open()


async def test_another_node_takes_over_where_one_does_not_answer(server: Server, fresh_prefix: Callable[[], str]):
    (port,) = free_ports(1)
    hosts = [f"http://127.0.0.1:{port}", server.url]
    async with store_at(hosts, index_prefix=fresh_prefix(), timeout=10) as store:
        for number in range(6):
            await append(store, number)
        assert numbers_of(await kept_calls(store)) == list(range(6))


OPEN_AND_APPEND = """
import asyncio, sys
from toolmem.store.elasticsearch import ElasticsearchStore
from toolmem.testing.clock import ManualClock
from toolmem.testing.store_contract.scenario import EMBEDDER, append

async def main():
    import elasticsearch, toolmem.store.elastic.sweeping
    print("ready", flush=True)
    sys.stdin.readline()
    url, prefix, number = sys.argv[1:]
    store = ElasticsearchStore(url, clock=ManualClock(), embedder=EMBEDDER, index_prefix=prefix, number_of_replicas=0)
    async with store:
        await append(store, int(number))

asyncio.run(main())
"""


async def test_processes_that_open_a_new_store_at_once_make_one(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN_AND_APPEND, server.url, prefix, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    failed = [error for process in processes if (error := process.communicate(timeout=300)[1])]
    assert failed == []
    async with store_at(server.url, index_prefix=prefix) as store:
        assert sorted(numbers_of(await kept_calls(store))) == list(range(4))


async def test_stores_that_open_at_once_in_one_process_make_one(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    stores = [store_at(server.url, index_prefix=prefix) for _ in range(6)]
    await asyncio.gather(*(store.open() for store in stores))
    await asyncio.gather(*(append(store, number) for number, store in enumerate(stores)))
    assert sorted(numbers_of(await kept_calls(stores[0]))) == list(range(6))
    await asyncio.gather(*(store.close() for store in stores))


async def test_indices_of_another_schema_are_refused_and_left_alone(server: Server, fresh_prefix: Callable[[], str]):
    prefix = fresh_prefix()
    async with store_at(server.url, index_prefix=prefix) as store:
        await append(store, 1, 2)
        for version in (99, 0):
            await _set_schema(store, version)
            said = f"{prefix}-tools at .* has schema version {version}, .*: use the toolmem that wrote it, or set"
            with pytest.raises(StoreVersionError, match=said):
                await store_at(server.url, index_prefix=prefix).open()
        await _set_schema(store, SCHEMA_VERSION)
        async with store_at(server.url, index_prefix=prefix) as again:
            assert numbers_of(await kept_calls(again)) == [1, 2]


async def _set_schema(store: ElasticsearchStore, version: int) -> None:
    session = store._open_session()
    await session.connection.call(
        lambda es: es.indices.put_mapping(index=session.layout.alias("tools"), meta={"toolmem_schema": version})
    )


async def test_a_store_is_used_in_its_own_process_and_loop(server: Server, fresh_prefix: Callable[[], str]):
    async with store_at(server.url, index_prefix=fresh_prefix()) as store:
        await append(store, 1)

        def elsewhere() -> None:
            with pytest.raises(StoreClosed, match="another event loop"):
                asyncio.run(store.tool_names(W))

        await asyncio.to_thread(elsewhere)
        child = os.fork()
        if child == 0:
            refused = 0
            for use in (store.tool_names(W), store.append_calls(W, TOOL, [call(1)], 2), store.close(), store.open()):
                try:
                    use.send(None)
                except StoreClosed:
                    refused += 1
            os._exit(0 if refused == 4 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        await append(store, 2)
        assert numbers_of(await kept_calls(store)) == [1, 2]


async def test_closing_waits_for_what_was_handed_over_even_from_a_cancelled_caller(
    server: Server, fresh_prefix: Callable[[], str]
):
    prefix = fresh_prefix()
    async with Proxy(server.url) as proxy:
        store = store_at(proxy.url, index_prefix=prefix)
        await store.open()
        proxy.faults = [once("_bulk", "drop before")]
        writes = [asyncio.create_task(store.append_calls(W, TOOL, [call(n)], 100)) for n in range(5)]
        await asyncio.sleep(0)
        for write in writes:
            write.cancel()
        await asyncio.sleep(0)
        await store.close()
        await store.open()
        assert numbers_of(await kept_calls(store)) == list(range(5))
        await store.close()
