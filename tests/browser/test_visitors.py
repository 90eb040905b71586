"""The load generator's visitors: what they were shown is whole, they share links, and they notice what fails."""

import asyncio
import random
from concurrent.futures import ThreadPoolExecutor

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from benchmarks.visitors import Offer, Seen, Visitor, crowd, knobs


def apart(visit):
    """The result of a coroutine, in a thread: Playwright keeps a loop of its own in that of the tests."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, visit).result()


def test_visitors_of_shared_links_see_whole_pages_and_live_numbers_and_no_error(app):
    offer = Offer([{}], [knobs(random.Random(3), [{}])], (0.1, 0.2), pages=1)
    seen, _ = apart(crowd([app], 3, 240, offer, seed=5))
    assert not seen.errors
    assert (len(seen.all_pages()), len(seen.moves)) == (3, 3)


def test_what_ends_after_a_page_was_asked_for_is_not_yet_that_page():
    class Deaf:
        async def send(self, message):
            pass

    visitor = Visitor("", Seen(), random.Random(0), Offer([{}]))
    visitor.socket = Deaf()
    begun, ended = ForwardMsg(), ForwardMsg(script_finished=ForwardMsg.FINISHED_SUCCESSFULLY)
    begun.new_session.page_script_hash = "page"
    found = []
    apart(visitor.ask(page="data"))
    for message in (ended, begun, ended):  # of the run before, then of the page
        visitor.take(message)
        found.append(visitor.finished)
    assert found == [False, False, True]


def test_visitors_note_a_page_that_is_not_there(app):
    class Lost(Visitor):
        pages = ("nowhere",)

    seen = Seen()
    apart(Lost(app, seen, random.Random(0), Offer([{}], thought=(0, 0.1), pages=1)).stay(1e12))
    assert list(seen.errors) == ["page not found"]


def test_visitors_note_data_that_cannot_be_read(app, tmp_path):
    seen = Seen()
    apart(Visitor(app, seen, random.Random(0), Offer([{"data": str(tmp_path)}], thought=(0, 0.1), pages=1)).stay(1e12))
    assert [error[:5] for error in seen.errors] == ["said:"]
