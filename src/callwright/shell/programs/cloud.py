"""Judges aws, az, gcloud, kubectl and gh calls by their verbs."""

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from callwright.core.access import Reach
from callwright.core.spec import Effect
from callwright.shell.findings import Judgement, unknown
from callwright.shell.judge import judge_by_rule
from callwright.shell.plan import Verdict
from callwright.shell.programs.databases import sql_problem
from callwright.shell.rule_tables import parse_table
from callwright.shell.words import Folders, Word

_AWS_VALUES = frozenset(
    "--region --profile --output --query --endpoint-url --color --ca-bundle --cli-read-timeout "
    "--cli-connect-timeout".split()
)
_AWS_READS = (
    "describe-* list-* get-* head-* batch-get-* search-* lookup-* query scan filter-log-events tail help "
    "validate-template admin-list-* admin-get-* preview-* estimate-* count-* check-* batch-describe-* start-query"
).split()
_AWS_SECRETS = frozenset(
    "get-secret-value get-session-token get-federation-token get-login-password get-login get-authorization-token "
    "get-random-password get-password-data get-credentials-for-identity get-role-credentials get-id "
    "get-open-id-token get-caller-token get-object get-object-torrent select-object-content get-job-output "
    "get-export get-sdk get-media get-clip get-raw-message-content get-snapshot-block get-package-version-asset "
    "get-read-set get-reference get-chunk get-image-frame get-configuration get-latest-configuration "
    "get-thing-shadow get-cluster-credentials get-cluster-credentials-with-iam get-token "
    "get-workload-access-token get-resource-oauth2-token test-invoke-method test-invoke-authorizer test-function "
    "test-state test-render-template test-failover batch-get-secret-value get-connection get-connections".split()
)
_AWS_REFUSED = (
    "--cli-input",
    "--debug",
    "--with-decryption",
    "--generate-cli-skeleton",
    "--ca-bundle",
    "--cli-auto-prompt",
)
_AWS_SECRET_VERBS = re.compile(
    r"get-.*(?:credential|auth-token|master-user-password|access-details|instance-access|compute-access|stream-key|"
    r"job-details|introspection-schema|code-binding-source|work-unit-results|image-set-metadata|-api-keys?\Z)|"
    r"get-api-keys?\Z|list-api-keys\Z"
)
"""Operations that print credentials, or write a file that the call names."""
_READ_SQL = re.compile(r"--query-string(?:=(.*))?\Z", re.DOTALL)

_AZ_READS = (
    "list show list-* show-* get-* exists check-* version find summarize logs search query list_* what-if validate"
).split()
_AZ_REFUSED = frozenset("get-access-token get-credentials check-in get-backend-credential".split())
_AZ_CREDENTIALS = re.compile(
    r"credential|connection-string|publishing|\bkeys list\b|(?:account|functionapp|cosmosdb) keys\b|list-keys\b|"
    r"(?:admin|query)-key\b|(?:signalr|webpubsub) key\b|keyvault secret show\b"
)
_CHANGES = re.compile(
    r"(?:create|delete|set|update|add|remove|start|stop|restart|run|invoke|import|export|purge|deploy|login|logout|reset|"
    r"assign|attach|detach|move|copy|upload|upgrade|install|uninstall|enable|disable|approve|reject|scale|rest|rotate|"
    r"regenerate|send|execute|exec|ssh|configure|clear|cancel|restore|failover|publish|generate|sync|apply|link|unlink|"
    r"lock|unlock|grant|revoke|renew|redeploy|deallocate|swap|init|up|edit|access|submit|promote|resize|patch|destroy)(?:-.*)?\Z"
)
_GROUP = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
_GCLOUD_READS = (
    "list describe list-* get-iam-policy get-value get read list-tags get-ancestors-iam-policy get-server-config "
    "describe-* get-health get-status get-serial-port-output search-* lookup get-effective-firewalls "
    "get-nat-mapping-info get-guest-attributes get-diagnostics"
).split()
_GCLOUD_SINGULAR = frozenset(
    "compute container run app iam kms pubsub sql dns logging monitoring storage config auth iap web tcp beta "
    "alpha bigtable spanner redis firestore datastore dataflow dataproc composer dataplex ai ml-engine artifacts "
    "docker npm maven python network-security network-connectivity certificate-manager scheduler tasks workflows "
    "eventarc deploy build source endpoints asset scc resource-manager org-policies organizations folders "
    "filestore memcache healthcare life-sciences iot edge-cloud network-management recommender services domains "
    "essential-contacts identity workspace anthos gke-hub fleet hub memberships access-context-manager "
    "policy-intelligence privateca apigee api-gateway bms bq cloud-shell debug deployment-manager emulators "
    "metastore ml notebooks oracle-database pam publicca quotas tpus transcoder transfer vmware workbench".split()
)
_GCLOUD_NESTED = frozenset(
    "web tcp docker npm maven python apt yum generic iam os-config sole-tenancy vpc-access hub fleet".split()
)
_GCLOUD_VALUES = frozenset(
    "--project --account --configuration --format --verbosity --region --zone --billing-project "
    "--impersonate-service-account --location".split()
)


def aws(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an aws call by the operation it names."""
    words = [word.text for word in arguments]
    if not all(word.literal for word in arguments):
        return unknown("a word of the aws call is not literal")
    path = _leading(words, _AWS_VALUES)
    if (
        words in (["--version"], ["help"])
        or path[:2] == ["configure", "list"]
        or path[:2] == ["configure", "list-profiles"]
    ):
        return Judgement(Verdict.READ_ONLY, "aws shows its own settings")
    if len(path) < 2:  # service and operation
        return unknown("it is not known what this aws call does")
    service, operation = path[:2]
    refused = next((word for word in words if _is_refused(word)), None)
    secret = operation in _AWS_SECRETS or _AWS_SECRET_VERBS.match(operation)
    if refused or secret or not _aws_reads(service, operation, words):
        return unknown(f"aws {service} {operation} may do more than read")
    return Judgement(Verdict.READS_NETWORK, f"aws {service} {operation} only reads", _list_endpoints(words, name))


def _is_refused(word: str) -> bool:
    """Whether a word is a refused option, or the beginning of one, which some versions accept."""
    name = word.partition("=")[0]
    shortened = len(name) > len("--wi") and any(refused.startswith(name) for refused in _AWS_REFUSED)
    return word.startswith(_AWS_REFUSED) or shortened


def _aws_reads(service: str, operation: str, words: Sequence[str]) -> bool:
    if service == "s3":
        return operation in ("ls", "help")
    if operation == "start-query-execution":
        query = _query(words)
        return service == "athena" and query is not None and not sql_problem(query)
    if service in ("configure", "sso", "ssm-sap") or (service == "sts" and operation != "get-caller-identity"):
        return False
    return any(fnmatchcase(operation, pattern) for pattern in _AWS_READS)


def _query(words: Sequence[str]) -> str | None:
    for place, word in enumerate(words):
        match = _READ_SQL.match(word)
        if match:
            return match[1] if match[1] is not None else "".join(words[place + 1 : place + 2])
    return None


def _list_endpoints(words: Sequence[str], name: str) -> tuple[Reach, ...]:
    named = [word.partition("=")[2] or word for word in words if "://" in word]
    return tuple(Reach(address) for address in named or [f"{name}:"])


def _leading(words: Sequence[str], values: frozenset[str]) -> list[str]:
    """Return the words that name groups and verb: those before the first option after them."""
    path: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        if word[:1] != "-":
            path.append(word)
        elif path:
            break
        elif word in values:
            place += 1
        place += 1
    return path


def az(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge an az call: groups, then a verb, then options only."""
    words = [word.text for word in arguments]
    if not all(word.literal for word in arguments):
        return unknown("a word of the az call is not literal")
    if words in (["--version"], ["version"], ["--help"]):
        return Judgement(Verdict.READ_ONLY, "az shows its version")
    path = _leading(words, frozenset(("--subscription", "--output", "-o", "--query", "--tenant")))
    changing = any(_CHANGES.match(word) for word in (path[1:] or path))  # `az lock list` only lists locks
    if not path or changing or not all(map(_GROUP.match, path[:-1])):
        return unknown("it is not known that this az call only reads")
    verb = path[0] if path[0] == "find" else path[-1]
    reads = any(fnmatchcase(verb, pattern) for pattern in _AZ_READS) and verb not in _AZ_REFUSED
    if _AZ_CREDENTIALS.search(" ".join(path)):
        return unknown(f"az {' '.join(path)} prints credentials")
    if not reads or any(
        word in ("--file", "-f", "--debug", "--web", "--open") for word in words if verb not in ("list-skus",)
    ):
        return unknown(f"az {' '.join(path)} may do more than read")
    return Judgement(Verdict.READS_NETWORK, f"az {' '.join(path)} only reads", (Reach("az:"),))


def gcloud(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a gcloud call: known groups, then a reading verb, then names and options."""
    words = [word.text for word in arguments]
    if not all(word.literal for word in arguments):
        return unknown("a word of the gcloud call is not literal")
    path = _leading(words, _GCLOUD_VALUES)
    if words in (["--version"], ["--help"]) or (path and path[0] in ("version", "info", "topic", "help")):
        return Judgement(Verdict.READS_NETWORK, "gcloud shows its own settings", (Reach("gcloud:"),))
    for place, word in enumerate(path):
        if place and any(fnmatchcase(word, pattern) for pattern in _GCLOUD_READS):
            return _gcloud_reads(path[: place + 1], words)
        top = place == 0 or all(before in ("alpha", "beta") for before in path[:place])
        if not _gcloud_group(word, top=top):
            break
    return unknown("it is not known that this gcloud call only reads")


def _gcloud_group(word: str, *, top: bool) -> bool:
    # deeper down "run" and "deploy" are verbs
    if word in (_GCLOUD_SINGULAR if top else _GCLOUD_NESTED):
        return True
    return bool(_GROUP.match(word)) and word.endswith("s") and not _CHANGES.match(word)


def _gcloud_reads(path: Sequence[str], words: Sequence[str]) -> Judgement:
    title = "gcloud " + " ".join(path)
    if "auth" in path or any(word.startswith(("--flags-file", "--log-http", "--access-token-file")) for word in words):
        return unknown(f"{title} may do more than read")
    return Judgement(Verdict.READS_NETWORK, f"{title} only reads", (Reach("gcloud:"),))


_KUBECTL = parse_table(
    r"""
kubectl: help; exact; network; values -n --namespace --context --cluster --user -v --request-timeout -l --selector -o
      --output -f --filename -c --tls-server-name; flags --insecure-skip-tls-verify --disable-compression
      --match-server-version --warnings-as-errors; not --kubeconfig --as --as-group --server -s --token
      --certificate-authority --client-certificate --client-key --cache-dir --profile-output --output-directory
      --log-file --log-dir
  get|describe|logs|top|explain|api-resources|api-versions|version|cluster-info|diff|events: not --output-directory
  auth can-i|whoami
  rollout status|history
  config view|get-contexts|get-clusters|get-users|current-context: not --raw
  plugin list
  options
"""
)["kubectl"]
_NAMES_ONLY = frozenset(("name", "wide"))
_WITH_VALUE = re.compile(r"(-[onl])=?(.+)", re.DOTALL)
"""Options that take a value with every sub-command, joined with it; `-f` has none behind `logs`."""


def kubectl(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a kubectl call; printing the contents of secrets is not read-only."""
    arguments = [part for word in arguments for part in _split_value(word)]
    judgement = judge_by_rule(name, _KUBECTL, arguments, folders)
    if judgement.verdict is Verdict.READS_NETWORK and _shows_secrets([word.text for word in arguments]):
        return unknown("kubectl would print the contents of secrets")
    return judgement


def _split_value(word: Word) -> tuple[Word, ...]:
    """Return the option and the value of `-ojson`, which holds no further options."""
    found = _WITH_VALUE.fullmatch(word.text)
    return (Word(found[1]), Word(found[2], word.form)) if found else (word,)


def _shows_secrets(words: Sequence[str]) -> bool:
    kinds = {part.partition("/")[0].partition(".")[0].lower() for word in words for part in word.split(",")}
    if any(word.startswith("--raw") for word in words) and any("secret" in word.lower() for word in words):
        return True
    if not kinds & {"secret", "secrets"}:
        return False
    return not _NAMES_ONLY.issuperset(_list_outputs(words))


def _list_outputs(words: Sequence[str]) -> Iterator[str]:
    """Yield the output formats, all of them: the last one counts, and `-o` may stand behind other letters."""
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name == "--template" or (len(name) > len("--") and "--output".startswith(name)):
                yield value if equals else following
        elif word[:1] == "-" and "o" in word:
            yield word.partition("o")[2].lstrip("=") or following


_GH = parse_table(
    r"""
gh: help; exact; network; values -R --repo; not -w --web
  pr list|view|diff|checks|status: not -w --web
  issue list|view|status
  repo list|view
  run list|view|watch
  workflow|cache|secret|variable|label|ssh-key|gpg-key|extension|ext|gist|release|codespace|cs|alias|org list|view|ls
  project list|view|field-list|item-list
  ruleset|rs list|view|check
  search repos|issues|prs|code|commits
  config get|list
  attestation verify|trusted-root
  status
  auth status: not -t --show-token
  api: only -X --method -q --jq -t --template -H --header --paginate --slurp --cache -i --include --silent --verbose
      -p --preview; values -X --method -q --jq -t --template -H --header --cache -p --preview; operands 1
  version|--version
  browse: needs --no-browser -n
"""
)["gh"]


def gh(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a gh call; its api command must be a GET."""
    judgement = judge_by_rule(name, _GH, arguments, folders)
    if judgement.verdict is not Verdict.READS_NETWORK:
        return judgement
    words = [word.text for word in arguments]
    if "api" in words and (problem := _api_problem(words)):
        return unknown(problem, (Reach("gh:", Effect.WRITE),))
    return judgement


def _api_problem(words: Sequence[str]) -> str:
    for place, word in enumerate(words):
        value = ""
        if word in ("-X", "--method"):
            value = words[place + 1] if place + 1 < len(words) else ""
        elif word.startswith("--method="):
            value = word.partition("=")[2]
        elif word[:1] == "-" and word[1:2] != "-" and "X" in word:  # -XPOST, and behind other letters
            value = word.partition("X")[2].lstrip("=") or "".join(words[place + 1 : place + 2])
        elif "method-override" in word.lower():
            return "a header may change the method"
        if value and value.upper() not in ("GET", "HEAD"):
            return f"{value} may change something"
    return "graphql may change something" if any(word.strip("/") == "graphql" for word in words) else ""
