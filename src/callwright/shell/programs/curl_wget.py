"""Judges curl and wget calls: printing a response is a network read, everything else sends or writes."""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from urllib.parse import unquote

from callwright.core.access import Access, Reach, ReadPath, WritePath
from callwright.core.spec import Effect
from callwright.shell.findings import Judgement, unknown
from callwright.shell.plan import Verdict
from callwright.shell.programs.outputs import list_inputs, list_outputs
from callwright.shell.rule_tables import parse_table
from callwright.shell.words import Folders, Word, resolve_as

_CURL = parse_table(
    r"""
curl: only -s -S -L -I -i -v -f -k -g -G -4 -6 -0 -1 -2 -3 -N -q -n -M -V -h -# --silent --show-error --location
      --head --include --verbose --fail --insecure --globoff --get --ipv4 --ipv6 --no-buffer --netrc --manual
      --version --help --progress-bar --no-progress-meter --compressed --fail-with-body --fail-early --http0.9
      --http1.0 --http1.1 --http2 --http2-prior-knowledge --http3 --tlsv1 --tlsv1.0 --tlsv1.1 --tlsv1.2 --tlsv1.3
      --negotiate --ntlm --basic --digest --anyauth --raw --tcp-nodelay --tcp-fastopen --path-as-is
      --retry-all-errors --retry-connrefused --ssl --ssl-reqd --no-keepalive --no-sessionid --location-trusted
      --proxy-insecure --compressed-ssh --styled-output --no-styled-output --parallel -Z;
      values -X -H -A -e -u -m -w -r -z -x -y -Y
      -o -b --request --header --user-agent --referer --user --max-time --connect-timeout --write-out --range
      --time-cond --proxy --proxy-user --socks4 --socks4a --socks5 --socks5-hostname --noproxy --retry --retry-delay
      --retry-max-time --resolve --connect-to --dns-servers --interface --limit-rate --max-redirs --output --cookie
      --url --cacert --capath --ciphers --proto --proto-default --max-filesize --keepalive-time --speed-limit
      --speed-time --oauth2-bearer --aws-sigv4 --happy-eyeballs-timeout-ms --expect100-timeout --parallel-max
      --tls-max --proto-redir -U -D --dump-header
"""
)["curl"]
_CURL_SHOWS = frozenset("-V -h -M --version --help --manual".split())
_CURL_OUTPUTS = tuple(
    "-o --output -c --cookie-jar -D --dump-header --trace --trace-ascii --stderr --libcurl --etag-save --hsts "
    "--alt-svc --ssl-sessions --output-dir".split()
)
_CURL_LETTERS = _CURL.values | frozenset("-c -d -F -T -K -E -C -t -Q -P".split())
_CURL_INPUTS = tuple("-T --upload-file -K --config -E --cert --key --netrc-file --pubkey --egd-file".split())
_FORM = re.compile(r"-F\Z|--form(?!-s)")
_NAMED_DATA = re.compile(r"--(?:data-u|url-q)")
_REMOTE_NAME = re.compile(r"-(?!-)[^oHXAebcdDFmrtTuUwxyYzCEPQK]*[OJ]|--remote-n|--remote-h")
_PROXIES = frozenset("-x --proxy --preproxy --socks4 --socks4a --socks5 --socks5-hostname --doh-url".split())
_CONNECTED = re.compile(r"\A(?:\[[^\]]*\]|[^:]*):[^:]*:")
_METHODS = frozenset(("GET", "HEAD", "OPTIONS"))
_WGET_OUTPUTS = (
    *("-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file", "-a", "--append-output"),
    *("--save-cookies", "--hsts-file", "--warc-file", "--warc-tempdir", "--rejected-log"),
)
_WGET_INPUTS = (
    *("-i", "--input-file", "--post-file", "--body-file", "--load-cookies", "--certificate", "--private-key"),
    *("--ca-certificate", "--config"),
)
_IN_BACKGROUND = re.compile(r"-(?!-)[a-zA-Z]*b|--ba")
_SCREEN = frozenset(("-", "/dev/null", "/dev/stdout", "/dev/stderr"))
_SENDS_DATA = re.compile(r"-d|-F|-T|--data|--form|--upload-file|--json|--url-query")
_WGET = parse_table(
    r"""
wget: only -q -v -S -d -c -4 -6 -nv --quiet --verbose --no-verbose --server-response --spider --version --help
      --debug --no-check-certificate --inet4-only --inet6-only --no-proxy --no-cache --no-cookies --no-hsts
      --https-only --max-redirect --show-progress --content-on-error; values -O --output-document -T --timeout -t
      --tries -U --user-agent --header --referer --wait -w --dns-timeout --connect-timeout --read-timeout --user
      --max-redirect
"""
)["wget"]


def curl(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a curl call: only listed flags, only reading methods, only the screen as output."""
    addresses = [word.text for word in _CURL.operand_words(arguments)]
    addresses += [value for flag, value in _iter_option_values(arguments) if flag == "--url"]
    reached = [*addresses, *_list_other_hosts(arguments)]
    touched = (*_list_reaches(reached, arguments), *_list_output_files(arguments, folders))
    touched = (*touched, *_list_read_addresses(addresses, folders))
    if any(_REMOTE_NAME.match(word.text) for word in arguments):
        touched = (*touched, *_list_saved_files(addresses, _list_folders(arguments, ("--output-dir",)), folders))
    objection = next((f"{word.text} is not literal" for word in arguments if not word.literal), "")
    objection = objection or _CURL.objection(arguments) or next(_curl_problems(arguments, addresses), "")
    if objection:
        return unknown(f"curl: {objection}", touched)
    if not addresses and not _CURL_SHOWS.isdisjoint([word.text for word in arguments]):
        return Judgement(Verdict.READ_ONLY, "curl shows its version or help")
    return Judgement(Verdict.READS_NETWORK, "curl prints the response", touched)


def _curl_problems(arguments: Sequence[Word], addresses: Sequence[str]) -> Iterator[str]:
    for flag, value in _iter_option_values(arguments):
        if flag in ("-X", "--request") and value.upper() not in _METHODS:
            yield f"{value} may change something"
        if flag in ("-o", "--output", "-D", "--dump-header") and value not in _SCREEN:
            yield f"it writes {value}"
        if flag in ("-w", "--write-out") and ("%output" in value or value.startswith("@")):
            yield "its format names a file"
        if flag in ("-H", "--header", "-b", "--cookie", "-U", "-e") and (
            value.startswith("@") or _is_file(flag, value)
        ):
            yield f"{flag} sends the file {value}"
        if flag == "--url" and value.startswith("@"):
            yield f"the file {value[1:]} names the addresses"
        if flag in ("--proto", "--proto-redir", "--proto-default") and not re.fullmatch(r"[=+-]?(?:https?,?)+", value):
            yield f"{value} may be any protocol"
    for address in addresses:
        yield from _scheme_problem(address)


def _list_other_hosts(arguments: Sequence[Word]) -> Iterator[str]:
    """Yield the hosts that a request is sent to or through in place of the one in its address."""
    for flag, value in _iter_option_values(arguments):
        if flag in _PROXIES:
            yield value
        elif flag == "--connect-to":  # HOST1:PORT1:HOST2:PORT2
            yield _CONNECTED.sub("", value)
        elif flag == "--resolve":  # HOST:PORT:ADDRESS[,ADDRESS]
            yield from value.split(":", 2)[-1].split(",")
        elif flag == "--dns-servers":
            yield from value.split(",")


def _is_file(flag: str, value: str) -> bool:
    return flag in ("-b", "--cookie") and "=" not in value


def _scheme_problem(address: str) -> Iterator[str]:
    scheme, mark, _ = address.partition("://")
    if mark and scheme.lower() not in ("http", "https"):
        yield f"the scheme {scheme} is not http or https"
    if not mark and address.lower().startswith(("file:", "gopher:", "telnet:", "dict:", "smb:")):
        yield f"{address} is not an http address"


def _iter_option_values(arguments: Sequence[Word]) -> Iterator[tuple[str, str]]:
    """Yield options with their values, however they are attached."""
    for place, word in enumerate(arguments):
        text = word.text
        following = arguments[place + 1].text if place + 1 < len(arguments) else ""
        if text.startswith("--"):
            name, mark, value = text.partition("=")
            yield name, value if mark else following
        elif text[:1] == "-":
            letter = next((spot for spot, flag in enumerate(text[1:], 1) if f"-{flag}" in _CURL_LETTERS), None)
            if letter is not None:
                yield f"-{text[letter]}", text[letter + 1 :] or following


def _list_reaches(addresses: Sequence[str], arguments: Sequence[Word]) -> tuple[Access, ...]:
    sends = any(_SENDS_DATA.match(word.text) for word in arguments)
    effect = Effect.WRITE if sends else Effect.READ
    return tuple(Reach(address, effect) for address in addresses)


def _list_output_files(arguments: Sequence[Word], folders: Folders) -> tuple[Access, ...]:
    touched: list[Access] = []
    places = _list_folders(arguments, ("--output-dir",))
    for flag, value in _iter_option_values(arguments):
        if _is_output(flag) and value and value not in _SCREEN:
            spelled = [value, *(f"{place}/{value}" for place in places)]
            touched.extend(resolve_as(WritePath, spelled, folders))
        elif named := _find_sent_file(flag, value):
            touched.extend(resolve_as(ReadPath, [named], folders))
    return tuple(touched)


def _find_sent_file(flag: str, value: str) -> str:
    """Return the file whose content an option of curl uses; empty if it names none."""
    if value.startswith("@") or flag in _CURL_INPUTS or _is_file(flag, value):
        return value.removeprefix("@")
    if _begins_option(flag, _CURL_INPUTS):
        return value
    if _NAMED_DATA.match(flag):  # name@file
        return value.partition("@")[2]
    sent = re.search(r"=[@<]([^;,]+)", value) if _FORM.match(flag) else None  # name=@file;type=x
    return sent[1] if sent else ""


def _list_read_addresses(addresses: Sequence[str], folders: Folders) -> Iterator[Access]:
    """Yield the files that addresses such as file:///x name."""
    for address in addresses:
        if named := re.match(r"file:(?://[^/]*)?(/.*)", address, re.IGNORECASE):
            yield from resolve_as(ReadPath, [unquote(named[1])], folders)


def _is_output(flag: str) -> bool:
    """Whether the value of an option is written; curl accepts the beginning of a long option."""
    return flag in _CURL_OUTPUTS or _begins_option(flag, _CURL_OUTPUTS)


def _begins_option(flag: str, options: Sequence[str]) -> bool:
    known = flag in (_CURL.allowed or ())
    return not known and len(flag) > len("--o") and any(option.startswith(flag) for option in options)


def _list_folders(arguments: Sequence[Word], options: Sequence[str]) -> list[str]:
    """Return the values of options that name the folder of saved files."""
    found = [following.text for word, following in pairwise(arguments) if word.text in options]
    return found + [word.text.partition("=")[2] for word in arguments if word.text.partition("=")[0] in options]


def _list_saved_files(addresses: Sequence[str], places: Sequence[str], folders: Folders) -> Iterator[Access]:
    """Yield writes of the files that are named like the end of their address."""
    for address in addresses:
        name = re.split(r"[?#]", address)[0].rpartition("/")[2]
        for spelled in dict.fromkeys((name, unquote(name))) if name else ():
            saved = [f"{place}/{spelled}" for place in (".", *filter(None, places))]
            yield from resolve_as(WritePath, saved, folders)


def wget(name: str, arguments: Sequence[Word], folders: Folders) -> Judgement:
    """Judge a wget call: only --spider or output to the screen reads."""
    addresses = [word.text for word in _WGET.operand_words(arguments)]
    touched: tuple[Access, ...] = (
        *(Reach(address) for address in addresses),
        *list_outputs(arguments, _WGET_OUTPUTS, folders),
        *list_inputs(arguments, _WGET_INPUTS, folders),
    )
    if not addresses and len(arguments) == 1 and arguments[0].text in ("--version", "--help", "-V", "-h"):
        return Judgement(Verdict.READ_ONLY, "wget shows its version or help")
    objection = next((f"{word.text} is not literal" for word in arguments if not word.literal), "")
    objection = objection or _WGET.objection(arguments) or next(_address_problems(addresses), "")
    to_screen = _to_screen([word.text for word in arguments])
    if not to_screen:
        saved = _list_saved_files(addresses, _list_folders(arguments, ("-P", "--directory-prefix")), folders)
        touched = (*touched, *saved, *resolve_as(WritePath, ["."], folders))
    if any(_IN_BACKGROUND.match(word.text) for word in arguments):
        touched = (*touched, *resolve_as(WritePath, ["wget-log"], folders))
    if objection:
        return unknown(f"wget: {objection}", touched)
    if not to_screen:
        return Judgement(Verdict.WRITES, "wget saves what it fetches", touched)
    return Judgement(Verdict.READS_NETWORK, "wget prints the response", touched)


def _address_problems(addresses: Sequence[str]) -> Iterator[str]:
    for address in addresses:
        yield from _scheme_problem(address)


def _to_screen(texts: Sequence[str]) -> bool:
    if "--spider" in texts:
        return True
    outputs = [following for flag, following in pairwise(texts) if flag in ("-O", "--output-document")]
    outputs += [text.partition("=")[2] for text in texts if text.startswith("--output-document=")]
    outputs += [text[2:] for text in texts if text.startswith("-O") and len(text) > 2]  # -O-
    # -qO
    clusters = [text for text in texts if text[:1] == "-" and text[1:2] != "-" and text.endswith("O") and len(text) > 2]
    for text in clusters:
        outputs.append(texts[texts.index(text) + 1] if texts.index(text) + 1 < len(texts) else "")
    outputs += ["-" for text in texts if text.endswith("O-") and text[:1] == "-"]
    return bool(outputs) and all(output in _SCREEN for output in outputs)
