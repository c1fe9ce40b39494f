"""Session stores: the durable record of messages, started calls, questions and answers."""

from callwright.core._lazy import lazy_exports

TYPE_CHECKING = False  # read as true by type checkers; importing typing would cost more than this file
if TYPE_CHECKING:
    from callwright.sessions.base import (
        BlobStore as BlobStore,
        SessionBusy as SessionBusy,
        SessionDamaged as SessionDamaged,
        SessionEntry as SessionEntry,
        SessionError as SessionError,
        SessionHit as SessionHit,
        SessionHold as SessionHold,
        SessionMissing as SessionMissing,
        SessionStore as SessionStore,
        StoredRecord as StoredRecord,
        StoreTooNew as StoreTooNew,
        check_session_id as check_session_id,
        export_jsonl as export_jsonl,
        list_undo_points as list_undo_points,
    )
    from callwright.sessions.lease import may_take_over as may_take_over, name_attempt as name_attempt
    from callwright.sessions.memory import MemoryStore as MemoryStore
    from callwright.sessions.postgres import PostgresStore as PostgresStore
    from callwright.sessions.record_encoding import dump_record as dump_record, load_record as load_record
    from callwright.sessions.records import (
        Record as Record,
        count_settled_records as count_settled_records,
        find_first_prompt as find_first_prompt,
        find_open_questions as find_open_questions,
    )
    from callwright.sessions.sqlite import SqliteStore as SqliteStore
    from callwright.sessions.waiting import (
        QuestionClosed as QuestionClosed,
        WaitingRun as WaitingRun,
        list_waiting as list_waiting,
        record_answers as record_answers,
    )
else:
    __getattr__ = lazy_exports(
        __name__,
        {
            "base": "SessionBusy SessionDamaged SessionEntry SessionError SessionHit SessionHold SessionStore"
            " StoredRecord SessionMissing StoreTooNew BlobStore check_session_id export_jsonl list_undo_points",
            "lease": "may_take_over name_attempt",
            "memory": "MemoryStore",
            "postgres": "PostgresStore",
            "record_encoding": "dump_record load_record",
            "records": "Record count_settled_records find_first_prompt find_open_questions",
            "sqlite": "SqliteStore",
            "waiting": "QuestionClosed WaitingRun list_waiting record_answers",
        },
        install={"asyncpg": "'callwright[postgres]'"},
    )
