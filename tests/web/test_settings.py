"""Hosts and origins under which a server is known."""

from dowise_web.settings import Settings


def test_origins_behind_a_proxy_need_tls():
    behind = Settings(url="https://Ward.example.org", port=8000)
    assert behind.origins == {
        "https://ward.example.org",
        "http://127.0.0.1:8000",
        "http://localhost:8000",
        "http://[::1]:8000",
    }
    assert behind.hosts == {
        "ward.example.org",
        "127.0.0.1:8000",
        "localhost:8000",
        "[::1]:8000",
    }


def test_only_the_default_port_may_be_left_out():
    assert Settings(host="10.1.2.3", port=80).hosts == {"10.1.2.3:80", "10.1.2.3"}
    assert Settings(host="10.1.2.3", port=443).hosts == {"10.1.2.3:443"}
    default_port = Settings(url="https://ward.example.org:443", host="10.1.2.3")
    assert default_port.origins == {"https://ward.example.org:443", "https://ward.example.org"}
