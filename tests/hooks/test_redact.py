"""The redactor: realistic credentials of many vendors, made up here, and texts that would take quadratic time."""

import random
import re
import string
import time
from importlib.resources import files
from pathlib import Path
from re import _constants, _parser  # pyright: ignore
from typing import Any

import pytest

from callwright import Completed, Effect, Executor, Image, Output, Registry, Text, UsageError, tool
from callwright.core.content import File
from callwright.hooks.builtin import Redact
from callwright.hooks.secret_formats import SecretRule, find_secrets, lower_in_place, secret_rules

parse: Any = _parser.parse  # pyright: ignore
codes: Any = _constants  # pyright: ignore

_RANDOM = random.Random(7)
_HEX, _LOWER, _ALPHA = "0123456789abcdef", string.ascii_lowercase + string.digits, string.ascii_letters + string.digits
_UPPER, _URL = string.ascii_uppercase + string.digits, string.ascii_letters + string.digits + "_-"
_KINDS = {"h": _HEX, "l": _LOWER, "a": _ALPHA, "u": _UPPER, "w": _URL, "d": string.digits}


def fake(form: str) -> tuple[str, str]:
    """Fill a form such as `ghp_{a36}`, so that no file holds a real-looking key; return its longest random part too."""
    filled: list[str] = []

    def fill(found: re.Match[str]) -> str:
        last = "a" if found[1] == "h" else "7"
        filled.append("".join(_RANDOM.choice(_KINDS[found[1]]) for _ in range(int(found[2]) - 1)) + last)
        return filled[-1]

    return re.sub(r"\{([hlauwd])(\d+)\}", fill, form), max(filled, key=len)


FORMS = [
    *("sk-{a48}", "sk-proj-{w74}", "sk-ant-api03-{w93}AA", "sk-or-v1-{h64}", "AIza{w35}", "hf_{a34}", "gsk_{a52}"),
    *("r8_{a37}", "pplx-{a48}", "xai-{a80}", "nvapi-{w64}", "lsv2_pt_{h32}_{h10}", "sk-lf-{h36}"),
    *("AKIA{u16}", "ASIA{u16}", "aws_secret_access_key = {a40}", "ya29.{w120}", "1//0{w60}", "GOCSPX-{w28}"),
    *("{a3}8Q~{w34}", "AccountKey={a86}==", "SharedAccessKey={a43}=", "dop_v1_{h64}", "dp.pt.{a43}", "HRKU-{w36}"),
    *("fo1_{w43}", "LTAI{a20}", "nfp_{a40}", "sbp_{h40}", "pscale_tkn_{w43}", "ghp_{a36}", "gho_{a36}", "ghs_{a36}"),
    *(
        "github_pat_{a22}_{a59}",
        "glpat-{w20}",
        "glrt-{w20}",
        "ATBB{a32}",
        "ATATT3{w180}",
        "npm_{a36}",
        "pypi-AgEI{w90}",
    ),
    *("rubygems_{h48}", "dckr_pat_{w27}", "oy2{l43}", "CLOJARS_{l60}", "xoxb-{d12}-{d12}-{a24}", "xoxp-{d11}-{a40}"),
    *("xapp-1-{u11}-{d13}-{h64}", "https://hooks.slack.com/services/T{u8}/B{u8}/{a24}"),
    *("https://discord.com/api/webhooks/{d18}/{w68}", "M{a23}.{a6}.{w38}", "{d9}:AA{w33}", "SG.{w22}.{w43}"),
    *("key-{h32}", "{h32}-us14", "AC{h32}", "xkeysib-{h64}-{a16}", "sk_live_{a24}", "rk_live_{a24}", "whsec_{a32}"),
    *("sq0atp-{w22}", "shpat_{h32}", "glsa_{a32}_{h8}", "NRAK-{u27}", "sntrys_{a80}", "dapi{h32}", "hvs.{w90}"),
    *("{a14}.atlasv1.{w67}", "pul-{h40}", "tskey-auth-{a12}-{a30}", "phc_{a43}", "lin_api_{a40}", "secret_{a43}"),
    *("pat{a14}.{h64}", "figd_{w40}", "PMAK-{h24}-{h34}", "EZAK{h54}", "eyJ{a30}.eyJ{a60}.{w43}"),
    *("postgres://ann:{a12}@db/app", "password: {a12}", '"api_key": "{a24}"', "DB_PASSWORD='{a10}'", "TOKEN={a32}"),
    *("Authorization: Bearer {w40}", "Authorization: Basic {a28}==", "client_secret={a30}", "--password {a14}"),
    *("mysql://root:{a9}@localhost:3306/x", "curl -u admin:{a14} https://x", "AGE-SECRET-KEY-1{u58}"),
    # more model vendors
    *("nvapi-{w64}", "csk-{l48}", "fw_{a24}", "tgp_v1_{w43}", "tvly-{a32}", "llx-{a48}", "pa-{w43}", "wandb_v1_{a77}"),
    *("sk-svcacct-{w74}T3BlbkFJ{w74}", "sk-ant-admin01-{w93}AA", "AQ.Ab8RN6{w44}", "ELEVENLABS_API_KEY=sk_{h48}"),
    # more clouds
    *(
        "amzn.mws.{h8}-{h4}-{h4}-{h4}-{h12}",
        "ABSK{a120}=",
        "da2-{l26}",
        "AWS_SESSION_TOKEN={a300}",
        "v1.0-{h24}-{h146}",
    ),
    *("Endpoint=sb://n.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={a43}=", "{a76}AZDO{a4}"),
    *("DefaultEndpointsProtocol=https;AccountName=x;AccountKey={a86}==;EndpointSuffix=core.windows.net",),
    *("https://x.blob.core.windows.net/c?sv=2024-01-01&sig={a43}%3D", "{a52}JQQJ99{a26}", "cfut_{a40}{h8}"),
    *(
        '"private_key_id": "{h40}"',
        "CLOUDFLARE_API_TOKEN={w40}",
        "vultr_api_key: {u36}",
        "HEROKU_API_KEY={h8}-{h4}-{h4}-{h12}",
    ),
    # more code hosts, registries and delivery
    *("ghu_{a36}", "ghr_{a36}", "glptt-{h40}", "gldt-{w20}", "GR1348941{w20}", "glcbt-1a_{w20}", "CCIPAT_{a22}_{l40}"),
    *("AKCp{a69}", "cmVmd{a59}", "bkua_{l40}", "sqp_{h40}", "SNYK_TOKEN={h8}-{h4}-{h4}-{h4}-{h12}", "pnu_{a36}"),
    *("//registry.example/:_authToken={h8}-{h4}-{h4}-{h4}-{h12}", "//npm.example/:_password={a24}", "tfp_{w59}"),
    *("[pypi]\nusername = ann\npassword = {a16}", "machine api.example.com\n  login ann\n  password {a14}"),
    *('{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{a28}=="}}}}}}'.replace("{{", "{").replace("}}", "}"),),
    *("users:\n- name: ann\n  user:\n    token: {a40}", "client-key-data: LS0tLS1CRUdJTi{a80}==", "token: {l6}.{l16}"),
    # more messages, shops and operations
    *("xoxp-{d12}-{d12}-{d12}-{h32}", "xoxe.xoxp-1-{u163}", "xoxc-{d12}-{d12}-{d12}-{h64}", "xoxd-{a120}"),
    *(
        "https://x.webhook.office.com/webhookb2/{h8}-{h4}-{h4}-{h4}-{h12}@{h8}-{h4}-{h4}-{h4}-{h12}/IncomingWebhook/{h32}/{h8}",
    ),
    *(
        "SK{h32}",
        "TWILIO_AUTH_TOKEN={h32}",
        "re_{a8}_{a24}",
        "mlsn.{a64}",
        "sk_test_{a24}",
        "rk_test_{a24}",
        "EAAC{a120}",
    ),
    *("access_token$production${l16}${h32}", "shpss_{h32}", "rzp_live_{a14}", "FLWSECK-{l32}-X", "duffel_live_{w43}"),
    *(
        "DD_API_KEY={h32}",
        "NRII-{w32}",
        "NRRA-{w32}",
        "https://{h32}@o{d6}.ingest.sentry.io/{d7}",
        "glc_{a60}",
        "dt0c01.{u24}.{u64}",
    ),
    *(
        "sntryu_{h64}",
        "ROLLBAR_ACCESS_TOKEN: {h32}",
        "hvb.{w140}",
        "s.{a24}",
        "ops_eyJ{a260}",
        "A3-{u6}-{u11}-{u5}-{u5}-{u5}",
    ),
    *("phx_{w43}", "ntn_{d11}{a35}", "sgp_{h40}", "napi_{a64}", "mdb_sa_sk_{w40}", "essu_{w80}", "apify_api_{a36}"),
    *(
        "AIRTABLE_KEY=key{a14}",
        "CFPAT-{w43}",
        "pk.eyJ{a60}.{w22}",
        "sk.eyJ{a60}.{w22}",
        "RGAPI-{h8}-{h4}-{h4}-{h4}-{h12}",
    ),
    # databases, protocols and files of any vendor
    *("mongodb+srv://ann:{a16}@cluster0.x.mongodb.net/app", "redis://:{a20}@cache:6379/0", "amqps://u:{a12}@mq:5671/v"),
    *("jdbc:postgresql://db/app?user=ann&password={a12}", "Server=db;Database=app;User Id=sa;Password={a12};"),
    *("https://ann:{a16}@github.com/x/y.git", "https://oauth2:{a20}@gitlab.com/x/y.git", "ftp://ann:{a8}@host/f"),
    *("db.example.com:5432:app:ann:{a12}", "[client]\nuser=root\npassword={a12}", "export PGPASSWORD={a10}"),
    *(
        "mysql -u root -p{a12} app",
        "sshpass -p {a12} ssh host",
        "--api-key={a32}",
        "X-API-Key: {a32}",
        "PRIVATE-TOKEN: {a20}",
    ),
    *("Cookie: theme=dark; sessionid={l32}", "Proxy-Authorization: Basic {a20}==", "secret_key_base: {h128}"),
    *("SECRET_KEY = 'django-insecure-{w50}'", "<password>{a12}</password>", '<add key="ApiKey" value="{a24}" />'),
    *("otpauth://totp/x:ann?secret={u32}&issuer=x", '{"kty": "oct", "k": "{w43}"}', "PrivateKey = {a43}=", "psk={a16}"),
    *("root:$6$abcdefgh${a86}:19000:0:99999:7:::", "ann:$2y$10${a53}", '\\"client_secret\\": \\"{a24}\\"'),
]


def test_credentials_are_replaced() -> None:
    for form in FORMS:
        text, secret = fake(form)
        cleaned = Redact().clean(f"line before\n{text}\nline after")
        assert secret not in cleaned and "[redacted]" in cleaned, form
        assert cleaned.startswith("line before\n") and cleaned.endswith("\nline after"), form


@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "({})",
        "<{}>",
        "key={}&x=1",
        "[{}]",
        "'{}'",
        "a,{},b",
        "{}.",
        "https://x.example/?k={}#f",
        "\x1b[32m{}\x1b[0m",
        r"a\n{}\n",
    ],
)
def test_credential_is_found_wherever_it_stands(around: str) -> None:
    for form in ("ghp_{a36}", "AKIA{u16}", "xoxb-{d12}-{d12}-{a24}", "sk-ant-{w90}", "hf_{a34}"):
        text, secret = fake(form)
        assert secret not in Redact().clean(around.format(text)), form


def test_names_in_plain_data_tell_what_is_secret() -> None:
    word = "correct-horse-" + "7x"
    data = {
        "db": [{"host": "localhost", "password": word, "pin": 5}],
        "DB_PASSWORD": word,
        "db_password_2": 12345678,
        "client_secret": "".join(_RANDOM.choice(_ALPHA) for _ in range(30)) + "a7",
        "log": f'ok\npassword="{word}" was "used"',
        "password_set": True,
        "password": None,
    }
    assert Redact().clean_data(data) == {
        "db": [{"host": "localhost", "password": "[redacted]", "pin": 5}],
        "DB_PASSWORD": "[redacted]",
        "db_password_2": "[redacted]",
        "client_secret": "[redacted]",
        "log": 'ok\npassword=[redacted] was "used"',
        "password_set": True,
        "password": None,
    }
    assert Redact([r'"pin":\s*\d+', "horse"]).clean_data({"pin": 12, "note": f"a {word}"}) == {
        "pin": "[redacted]",
        "note": "a correct-[redacted]-7x",
    }


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        # a value in quotes after the name of a password, whatever it is; after other names only if it looks random
        ('password = "swordfish"', 'password = "[redacted]"'),
        ('token = "swordfish"', 'token = "swordfish"'),
        ('api_key = "a1B2-c3D4-e5"', 'api_key = "[redacted]"'),
        ('colour = "a1B2-c3D4-e5"', 'colour = "a1B2-c3D4-e5"'),
        ('public_key = "a1B2-c3D4-e5"', 'public_key = "a1B2-c3D4-e5"'),
        # without quotes a word may be a variable of a program, except as shells write it
        ("DB_PASSWORD=swordfish", "DB_PASSWORD=[redacted]"),
        ("DB_PASSWORD = swordfish", "DB_PASSWORD = swordfish"),
        ("DB_PASSWORD: swordfish", "DB_PASSWORD: swordfish"),
        ("db_password=swordfish", "db_password=swordfish"),
        ("DB_TOKEN=swordfish", "DB_TOKEN=swordfish"),
        ("api_key=a1B2-c3D4-e5", "api_key=[redacted]"),
        ("colour=a1B2-c3D4-e5", "colour=a1B2-c3D4-e5"),
        ("next_token=a1B2-c3D4-e5", "next_token=a1B2-c3D4-e5"),
        ("password: abc123", "password: [redacted]"),
        ("password: abcdef", "password: abcdef"),
        ("token: abc123", "token: abc123"),
        # what looks random has eight characters, six of them different, with digits and letters
        ("api_key=a1b2c3d", "api_key=a1b2c3d"),
        ("api_key=a1b2c3d4", "api_key=[redacted]"),
        ("api_key=a1b2caaa", "api_key=a1b2caaa"),
        ("api_key=a1b2c3aa", "api_key=[redacted]"),
        ("api_key=abcdefgH", "api_key=abcdefgH"),
        ("api_key=12345678", "api_key=12345678"),
        # expressions
        ("token=a1B2-c3D4-e5==", "token=[redacted]"),
        ("token=a1=B2=c3D4e5", "token=a1=B2=c3D4e5"),
        ("api_key=https://a1B2c3D4e5", "api_key=https://a1B2c3D4e5"),
        ("PASSWORD=settings.old1", "PASSWORD=settings.old1"),
    ],
)
def test_name_and_form_of_an_assignment_tell_what_is_secret(text: str, cleaned: str) -> None:
    assert Redact().clean(text) == cleaned


def test_names_of_vendors_tell_what_is_secret_in_plain_data() -> None:
    secret = fake("{l32}")[0]
    for name in ("algolia", "wifi_psk"):
        assert Redact().clean_data({name: secret, "colour": secret}) == {name: "[redacted]", "colour": secret}


def test_every_text_of_plain_data_is_cleaned_and_the_rest_stays() -> None:
    own = Redact(["anna", r'"zz":\d+', r'"on":true', '"in":{'])
    data = {"anna": ("anna", ["anna", 5]), "zz": 12, "on": True, "in": {"anna": 1.5}, "none": None}
    assert own.clean_data(data) == {
        "[redacted]": ("[redacted]", ["[redacted]", 5]),
        "zz": "[redacted]",
        "on": True,
        "in": {"[redacted]": 1.5},
        "none": None,
    }


def test_secrets_in_lists_are_replaced() -> None:
    random_text = "a1B2-c3D4-e5"
    data = {"password": ["swordfish", ["abcd", 5]], "tokens": (random_text, "swordfish"), "pass": ["test_login"]}
    assert Redact().clean_data(data) == {
        "password": ["[redacted]", ["[redacted]", 5]],
        "tokens": ("[redacted]", "swordfish"),
        "pass": ["test_login"],
    }
    for text in (
        '{"password": ["swordfish", "two words", "abcd"]}',
        '{\\"password\\": [\\"swordfish\\", \\"abcd\\"]}',
        "passwords = [\n    'swordfish',\n    'abcd',\n]",
        f'api_keys: ["{random_text}", "{random_text}"]',
    ):
        cleaned = Redact().clean(text)
        assert cleaned.count("[redacted]") == 2 and "swordfish" not in cleaned and "abcd" not in cleaned, cleaned
    for text in ('password_fields = ["user.name", "last_login"]', "password = [x for x in 'abcdef']", "token: ["):
        assert Redact().clean(text) == text


def test_option_of_any_name_with_a_password_is_replaced() -> None:
    assert Redact().clean("x --root-password swordfish y") == "x --root-password [redacted] y"


def test_letters_that_equal_others_in_any_case_hide_nothing() -> None:
    secret = fake("{l32}")[0]
    for name in ("adafruit", "adafru\u0131t", "ADAFRU\u0130T", "\N{LATIN SMALL LETTER E WITH ACUTE} adafruit"):
        assert secret not in Redact().clean(f"{name} = {secret}")
    assert secret not in Redact().clean(f"fa\N{LATIN SMALL LETTER LONG S}tly: {secret}")


def test_words_of_a_rule_tell_where_its_matches_begin() -> None:
    for rule in (rule for rules in secret_rules() for rule in rules):
        everywhere = SecretRule(rule.kind, rule.words, rule.pattern)
        tree = parse(rule.pattern)
        for _ in range(4):
            text = "".join(f"{_RANDOM.choice(' ,.-a')}{_sample(tree)}\n" for _ in range(2))
            lowered = lower_in_place(text)
            assert list(rule.find(text, lowered)) == list(everywhere.find(text, lowered)), rule.pattern


def _sample(tree: Any) -> str:
    """Return a text that a pattern matches, apart from conditions on what is around it."""
    return "".join(_sample_part(code, value) for code, value in tree)


def _sample_part(code: Any, value: Any) -> str:
    if code is codes.LITERAL:
        return chr(value)
    if code in (codes.NOT_LITERAL, codes.ANY):
        return _RANDOM.choice("aZ9-")
    if code is codes.IN:
        shown = [part for part in value if part[0] in (codes.LITERAL, codes.RANGE)]
        if value[0][0] is codes.NEGATE or not shown:
            return _RANDOM.choice("aZ9_")
        kind, part = _RANDOM.choice(shown)
        return chr(part if kind is codes.LITERAL else _RANDOM.randint(*part))
    if code is codes.BRANCH:
        return _sample(_RANDOM.choice(value[1]))
    if code is codes.SUBPATTERN:
        return _sample(value[-1])
    if code in (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT):
        low, high, inner = value
        count = _RANDOM.randint(low, min(int(high), low + _RANDOM.choice((0, 3, 30))))
        return "".join(_sample(inner) for _ in range(count))
    return ""


def test_own_patterns_are_matched_each_by_itself() -> None:
    own = Redact([r"(a)nna", r"(?i)project \w+", r"(['\"])tok-\d+\1"])
    assert own.clean("anna: PROJECT x 'tok-12' \"tok-3'") == "[redacted]: [redacted] [redacted] \"tok-3'"
    assert Redact([]).clean("anna") == "anna"
    with pytest.raises(UsageError, match=r"got the string 'anna'; write \['anna'\]"):
        Redact("anna")
    with pytest.raises(UsageError, match=r"'\(a' is not a regular expression"):
        Redact(["b", "(a"])


async def test_file_that_is_text_is_cleaned() -> None:
    word = "hunter" + "2secretX9"
    files = [
        File(f"password = {word}".encode(), kind, "a") for kind in ("text/plain; charset=utf-8", "application/JSON")
    ]
    drawing = Image(f"<svg password='{word}'/>".encode(), "image/svg+xml")
    picture = Image(b"\x89PNG\r\n\x1a\n" + f"password = {word}".encode(), "text/plain")

    @tool(effect=Effect.READ)
    async def fetch() -> Output:
        """Fetch files."""
        return Output((*files, drawing, picture))

    outcome = await Executor(Registry(fetch), hooks=[Redact()]).run("fetch")
    assert isinstance(outcome, Completed)
    *texts, last = outcome.output.parts
    assert [part.data for part in texts if not isinstance(part, Text)] == [
        *[b"password = [redacted]"] * 2,
        b"<svg password='[redacted]'/>",
    ]
    assert last == picture


def test_private_keys_are_replaced_with_and_without_an_end() -> None:
    head, end = "-----BEGIN " + "RSA PRIVATE KEY-----", "-----END " + "RSA PRIVATE KEY-----"
    body = f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{fake('{h32}')[0]}\n\n{fake('{a64}')[0]}\n"
    assert Redact().clean(f"a\n{head}\n{body}{end}\nb") == "a\n[redacted]\nb"
    assert Redact().clean(f"a\n{head}\n{body}") == "a\n[redacted]"


@pytest.mark.parametrize(
    "text",
    [
        "def tokenize(text: str) -> list[str]: return text.split()",
        "password = getpass.getpass()",
        "token: str | None = None",
        "commit 0123456789abcdef0123456789abcdef01234567",
        "https://example.com/a/b?c=d#e",
        "The secret of a good test is a short name.",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redact().clean(text) == text


@pytest.mark.slow
def test_own_sources_hold_few_false_positives() -> None:
    lines = found = 0
    for path in sorted((Path(__file__).parents[2] / "src").rglob("*.py"))[::6]:
        text = path.read_text(encoding="utf-8")
        lines += text.count("\n")
        found += len(find_secrets(text))
    assert found / lines < 2 / 10_000, f"{found} in {lines} lines"


def test_every_rule_is_bounded() -> None:
    """Count the ways a matcher may try from one place: no repetition without an end, no choice inside a choice."""
    tokens, contexts = secret_rules()
    assert len(tokens) + len(contexts) > 450
    for rule in (*tokens, *contexts):
        assert all(rule.words) and rule.kind in ("token", "text", "block"), rule.pattern
        assert _count_ways(parse(rule.pattern)) < 2_000_000, rule.pattern


def _count_ways(tree: Any) -> int:
    ways = 1
    for code, value in tree:
        if code is codes.BRANCH:
            ways *= sum(map(_count_ways, value[1]))
        elif code in (codes.MAX_REPEAT, codes.MIN_REPEAT):
            low, high, inner = value
            assert high is not codes.MAXREPEAT, "a repetition without an end"
            ways *= (high - low + 1) * _count_ways(inner) ** min(high, 4)
        elif code in (codes.SUBPATTERN, codes.POSSESSIVE_REPEAT):
            ways *= _count_ways(value[-1]) if code is codes.SUBPATTERN else 1
    return ways


def test_rules_and_their_licence_are_installed() -> None:
    folder = files("callwright.hooks")
    licence = folder.joinpath("secret_rules.LICENSE").read_text("utf-8")
    assert "MIT License" in licence and "Apache License" in licence
    assert "kingfisher" in folder.joinpath("secret_rules.json").read_text("utf-8")[:200]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        "-----BEGIN " + "RSA PRIVATE KEY-----\n",
        "-----BEGIN ",
        "eyJaaaaaaaaaa.",
        "eyJ",
        "password",
        "api_key=",
        "a" * 7,
        "sk-",
        "://a:",
        "PuTTY-User-Key-File-2:",
        "token ",
        "-u a:",
        "AC0",
        "password: [",
        'password=["a",',
        "value=",
    ],
)
def test_time_grows_with_the_length_alone(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        return min(_measure(text) for _ in range(2))

    # ten times the text: quadratic time would be a hundred times; the margin is for a busy machine
    assert seconds(60_000) < 30 * max(seconds(6_000), 0.0005)


@pytest.mark.slow
def test_time_grows_with_the_length_alone_for_every_word() -> None:
    tokens, contexts = secret_rules()
    for rule in (*tokens, *contexts):
        for piece in (f"{rule.words[0]}{filler}" for filler in ("", " ", "a", "=", "-a1")):
            short, long = (piece * (size // len(piece)) for size in (2_000, 20_000))
            # a garbage collection or a busy neighbour can make one measurement long, not five
            limit = 40 * max(_measure(short, rule), 0.0005)
            assert any(_measure(long, rule) < limit for _ in range(5)), rule.pattern


def _measure(text: str, rule: SecretRule | None = None) -> float:
    began = time.process_time()
    for _ in find_secrets(text) if rule is None else rule.find(text, lower_in_place(text)):
        pass
    return time.process_time() - began
