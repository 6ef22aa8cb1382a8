"""Elastic quotas: names that are not kept apart yet."""

from admitter.quotas.elastic import Declared


def test_a_name_that_was_cut_is_no_other_quotas_name() -> None:
    """Of a long namespace 49 letters are left, and ten of a digest; both could be names as well."""
    long = Declared("ElasticQuota", "a" * 60, "quota", 0.0, ("a" * 60,))
    namespace, _, digest = long.queue.removeprefix("eq_").partition("__")
    assert len(digest) == 10
    for name in (digest, f"{digest}-"):
        other = Declared("ElasticQuota", namespace, name, 1.0, (namespace,))
        assert other.queue != long.queue
