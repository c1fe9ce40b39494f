"""Which environment variables are left out of what is started."""

import pytest

from callwright.system.environment import is_credential, without_credentials
from callwright.system.subprocesses import clean_environment

CREDENTIALS = [
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GITHUB_TOKEN", "GH_TOKEN", "NPM_TOKEN", "npm_config__authToken"),
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AZURE_CLIENT_SECRET"),
    *("GOOGLE_APPLICATION_CREDENTIALS", "DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "SMTP_PASS", "REDIS_PASSWD"),
    *("STRIPE_SECRET", "SECRET_KEY_BASE", "JWT_SECRET", "SENTRY_DSN", "SLACK_WEBHOOK_URL", "SSH_AUTH_SOCK"),
    *("APIKEY", "MY_APIKEY", "GPG_PASSPHRASE", "SESSION_COOKIE", "VAULT_ADDR", "TF_VAR_db", "DATABASE_PASSWORD_FILE"),
    *(
        "ARM_CLIENT_ID",
        "AZURE_TENANT_ID",
        "ALICLOUD_REGION_ID",
        "OP_SESSION_my",
        "BW_CLIENTID",
        "BW_SESSION",
        "VAULT_NAMESPACE",
    ),
    *("api-key", "my.token", "NETRC", "APP_LICENSE", "SIGNING_CERT", "DB_CONN_STR", "AUTH_HEADER", "CREDS", "ENCKEY"),
    *("API_KEY_2", "TOKEN", "KEY", "GITHUB_PAT", "AZURE_STORAGE_CONNECTION_STRING", "LANGFUSE_PUBLIC_KEY"),
]
ORDINARY = [
    *("PATH", "HOME", "PWD", "OLDPWD", "LANG", "LC_ALL", "TERM", "USER", "SHELL", "TMPDIR", "EDITOR", "PYTHONPATH"),
    *("VIRTUAL_ENV", "CARGO_HOME", "GOPATH", "JAVA_HOME", "TOKENIZERS_PARALLELISM", "KEYBOARD_LAYOUT", "AWS_REGION"),
    *("AWS_DEFAULT_REGION", "AWS_CA_BUNDLE", "AWS_PAGER", "AZURE_CONFIG_DIR", "XAUTHORITY", "GNOME_KEYRING_CONTROL"),
    *("XDG_RUNTIME_DIR", "DISPLAY", "COLUMNS", "CI", "NODE_ENV", "DOCKER_HOST", "HTTP_PROXY", "MONKEYTYPE"),
]


def test_credential_names_are_recognised() -> None:
    assert [name for name in CREDENTIALS if not is_credential(name, "x")] == []


def test_ordinary_names_are_kept() -> None:
    assert [name for name in ORDINARY if is_credential(name, "/usr/local/x")] == []


@pytest.mark.parametrize(
    "value",
    [
        *("postgres://ann:hunter2@db/app", "http://ann:pw@proxy:3128", "http://:pw@proxy", "gh" + "p_" + "a" * 36),
        *(
            "Server=x;Password=y;",
            "x;AccountKey=abc",
            "-----BEGIN RSA PRIVATE KEY-----",
            " -----BEGIN CERTIFICATE-----",
        ),
        *("sk" + "-abc", "AK" + "IA1234", "ey" + "JhbGciOiJI.x", "npm" + "_x", "hf" + "_x", "xox" + "b-1"),
    ],
)
def test_values_that_hold_a_credential_are_recognised(value: str) -> None:
    assert is_credential("PLAIN", value)


def test_value_decides_whatever_the_name_says() -> None:
    assert is_credential("PWD", "http://ann:pw@proxy") and is_credential("AWS_REGION", "sk" + "-abc")
    assert not is_credential("PLAIN", "http://proxy:3128/a@b") and not is_credential("PLAIN", "a task-list")


def test_own_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_TOKEN", "x")
    monkeypatch.setenv("SHOP_NAME", "y")
    own = without_credentials()
    assert own["SHOP_NAME"] == "y" and "SHOP_TOKEN" not in own
    assert without_credentials({}) == {}


def test_named_variables_are_passed_on() -> None:
    given = {"PATH": "/bin", "GH_TOKEN": "a", "AWS_PROFILE": "b", "AWS_SECRET_ACCESS_KEY": "c"}
    assert without_credentials(given) == {"PATH": "/bin"}
    assert set(without_credentials(given, passed=["GH_TOKEN", "AWS_P*"])) == {"PATH", "GH_TOKEN", "AWS_PROFILE"}


def test_children_do_not_find_programs_in_their_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", ":/usr/bin:.:bin:/bin:")
    assert clean_environment()["PATH"] == "/usr/bin:/bin"
