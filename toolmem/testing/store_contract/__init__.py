"""What every backend of `toolmem.protocols.MemoryStore` promises, as a test suite that any of them can run.

    class TestMyStore(StoreContract):
        @pytest.fixture
        def fresh_store(self, tmp_path):
            return lambda: MyFactory(tmp_path / uuid.uuid4().hex)   # a StoreFactory on new, empty data

Nothing in it knows an engine. The tests are plain functions that drive their own event loop, so that no pytest plugin
is needed. A factory is picklable where other processes can reach the same data.
"""

import pytest

PARTS = "call_logs calls copies decisions guidance masked_secrets model namespaces processes search_legs tenancy"
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in PARTS.split()))

from toolmem.testing.store_contract.call_logs import CallLogContract  # noqa: E402
from toolmem.testing.store_contract.calls import CallsContract  # noqa: E402
from toolmem.testing.store_contract.copies import MergingContract  # noqa: E402
from toolmem.testing.store_contract.decisions import DecisionLogContract, StampContract  # noqa: E402
from toolmem.testing.store_contract.guidance import GuidanceContract  # noqa: E402
from toolmem.testing.store_contract.masked_secrets import SecretsContract  # noqa: E402
from toolmem.testing.store_contract.model import ModelContract  # noqa: E402
from toolmem.testing.store_contract.namespaces import KeyedRecordsContract  # noqa: E402
from toolmem.testing.store_contract.processes import ProcessesContract  # noqa: E402
from toolmem.testing.store_contract.scenario import EMBEDDER, StoreFactory  # noqa: E402
from toolmem.testing.store_contract.search_legs import SearchContract  # noqa: E402
from toolmem.testing.store_contract.tenancy import TenancyContract  # noqa: E402

__all__ = ["EMBEDDER", "StoreContract", "StoreFactory"]


class StoreContract(
    CallsContract,
    CallLogContract,
    DecisionLogContract,
    StampContract,
    GuidanceContract,
    MergingContract,
    KeyedRecordsContract,
    SearchContract,
    TenancyContract,
    SecretsContract,
    ProcessesContract,
    ModelContract,
):
    """All promises. A subclass provides the fixture `fresh_store`, and `damage_record` where it can."""
