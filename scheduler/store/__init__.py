"""All state: the only room, with `scripts`, that speaks Redis; key names live here.

`connect` opens and judges a server, `keys` names what lies where, `operations` moves (one script each), `views` reads.
Must not know how plans are written, how agents run or how anything looks on a screen.
"""

from scheduler.store.connect import StoreConfig, connect, open_store, preflight, rq_connection
from scheduler.store.operations import Staged, Store
from scheduler.store.views import Standing, Views

__all__ = ["Staged", "Standing", "Store", "StoreConfig", "Views", "connect", "open_store", "preflight", "rq_connection"]
