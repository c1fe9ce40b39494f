"""Patterns of well-known credentials, for `Redact`. They reduce leaks and cannot find every secret.

Each pattern is the documented form of one vendor's credentials. All of them run in linear time: every repetition is of
one class of characters and has an upper bound, or ends at a character it cannot contain.
"""

import re

_TOKENS = (
    # models
    r"sk-(?:ant-|proj-|svcacct-|admin-|or-v1-|lf-)?[A-Za-z0-9_-]{16,200}",
    r"AIza[0-9A-Za-z_-]{35}",
    r"hf_[A-Za-z0-9]{30,60}",
    r"gsk_[A-Za-z0-9]{20,80}",
    r"r8_[A-Za-z0-9]{30,60}",
    r"pplx-[A-Za-z0-9]{40,80}",
    r"xai-[A-Za-z0-9]{40,120}",
    r"nvapi-[A-Za-z0-9_-]{40,100}",
    r"fw_[A-Za-z0-9]{20,60}",
    r"tgp_v1_[A-Za-z0-9_-]{30,80}",
    r"lsv2_(?:pt|sk)_[A-Za-z0-9_]{30,80}",
    r"(?:pk|sk)-lf-[0-9a-f-]{36}",
    # clouds
    r"(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AGPA|AIDA|AROA|ANPA)[A-Z0-9]{16}",
    r"ya29\.[0-9A-Za-z_-]{20,400}",
    r"1//0[0-9A-Za-z_-]{30,120}",
    r"GOCSPX-[0-9A-Za-z_-]{28}",
    r"[0-9]{6,20}-[0-9a-z]{32}\.apps\.googleusercontent\.com",
    r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{34}",
    r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/=]{40,100}",
    r"sig=[A-Za-z0-9%+/]{43,80}(?:%3[dD]|=)",
    r"do[opr]_v1_[a-f0-9]{64}",
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[A-Za-z0-9.]{40,60}",
    r"HRKU-[A-Za-z0-9_-]{36,64}",
    r"fo1_[A-Za-z0-9_-]{43}",
    r"FlyV1 [A-Za-z0-9+/=,_-]{40,1000}",
    r"LTAI[A-Za-z0-9]{12,30}",
    r"AKID[A-Za-z0-9]{28,40}",
    r"vercel_[A-Za-z0-9_]{20,60}",
    r"nfp_[A-Za-z0-9]{36,60}",
    r"sbp_[a-f0-9]{40}",
    r"sb_secret_[A-Za-z0-9_-]{20,60}",
    r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.=-]{32,80}",
    r"railway_[A-Za-z0-9_-]{20,60}",
    r"rnd_[A-Za-z0-9]{28,60}",
    # code hosts and registries
    r"gh[pousr]_[A-Za-z0-9]{30,255}",
    r"github_pat_[A-Za-z0-9_]{30,120}",
    r"gl(?:pat|ptt|dt|rt|cbt|ft|soat|imt|agent|oas|ffct)-[A-Za-z0-9_.-]{16,80}",
    r"ATBB[A-Za-z0-9]{20,40}",
    r"ATATT3[A-Za-z0-9_=-]{40,250}",
    r"npm_[A-Za-z0-9]{30,50}",
    r"pypi-AgEI[A-Za-z0-9_-]{50,250}",
    r"rubygems_[a-f0-9]{48}",
    r"dckr_(?:pat|oat)_[A-Za-z0-9_-]{20,60}",
    r"oy2[a-z0-9]{43}",
    r"CLOJARS_[a-z0-9]{60}",
    r"cio[A-Za-z0-9]{32}",
    r"bkua_[a-z0-9]{40}",
    r"sqp_[a-f0-9]{40}|squ_[a-f0-9]{40}",
    r"CCIPAT_[A-Za-z0-9_]{30,90}",
    # communication
    r"xox[abceoprs](?:\.xox[bp])?-[A-Za-z0-9-]{10,250}",
    r"xapp-[0-9]-[A-Za-z0-9-]{20,150}",
    r"https://hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9+/]{20,80}",
    r"https://(?:ptb\.|canary\.)?discord(?:app)?\.com/api/webhooks/[0-9]{10,25}/[A-Za-z0-9_-]{40,100}",
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,45}",
    r"[0-9]{8,10}:AA[A-Za-z0-9_-]{33}",
    r"https://[a-z0-9-]{1,60}\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/-]{50,250}",
    r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{30,64}",
    r"key-[a-f0-9]{32}",
    r"[a-f0-9]{32}-us[0-9]{1,2}",
    r"re_[A-Za-z0-9]{8,12}_[A-Za-z0-9]{20,30}",
    r"(?:AC|SK)[a-f0-9]{32}",
    r"xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}",
    # payments and shops
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,150}",
    r"whsec_[A-Za-z0-9+/=]{20,80}",
    r"sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,50}|EAAA[A-Za-z0-9_-]{50,80}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}",
    r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[a-f0-9]{32}",
    r"(?:live|test)_[A-Za-z0-9]{30,40}",
    # operations
    r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}|glc_[A-Za-z0-9+/=]{32,400}",
    r"NRAK-[A-Z0-9]{27}|NRJS-[a-f0-9]{19}|NRII-[A-Za-z0-9_-]{32}",
    r"sntry[su]_[A-Za-z0-9_+/=]{40,300}",
    r"dapi[a-f0-9]{32}(?:-[0-9])?",
    r"hv[sbr]\.[A-Za-z0-9_-]{20,250}",
    r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{60,80}",
    r"pul-[a-f0-9]{40}",
    r"ops_eyJ[A-Za-z0-9+/=]{100,1000}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    r"tskey-[a-z]{2,12}-[A-Za-z0-9_-]{16,80}",
    r"phc_[A-Za-z0-9]{40,50}|phx_[A-Za-z0-9]{40,50}",
    r"lin_api_[A-Za-z0-9]{32,50}|lin_oauth_[a-f0-9]{64}",
    r"(?:secret|ntn)_[A-Za-z0-9]{40,60}",
    r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",
    r"figd_[A-Za-z0-9_-]{36,60}",
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    r"EZ[AT]K[a-f0-9]{54}",
    r"SHA256~[A-Za-z0-9_-]{43}",
    r"AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{140}",
    r"v1\.0-[a-f0-9]{24}-[a-f0-9]{146}",
    # any vendor
    r"eyJ[A-Za-z0-9_-]{10,4000}\.[A-Za-z0-9_-]{10,8000}\.[A-Za-z0-9_-]{0,1000}",
)

SECRETS = (
    *(rf"(?<![A-Za-z0-9])(?:{token})" for token in _TOKENS),
    # up to the next row of dashes, with or without an end: a cut key is a key
    r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*"
    r"(?:-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----)?",
    r"PuTTY-User-Key-File-[0-9]:[^\x00]{0,8000}?Private-MAC: [a-f0-9]{1,128}",
)
"""Patterns whose whole match is a secret."""

_NAME = r"[A-Za-z0-9_.-]{0,40}(?:api[_-]?key|access[_-]?key|secret|token|passw(?:or)?d|passphrase|pwd|credential|auth)"
ASSIGNED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # name = "value", "name": "value", and name=value1 with a digit, so that names of variables stay readable
        rf"""((?<![A-Za-z0-9_.-]){_NAME}[A-Za-z0-9_-]{{0,20}}["']?\s{{0,4}}(?:=>|:=|[:=])\s{{0,4}}["'])"""
        r"""[^"'\s\\]{6,500}""",
        rf"""((?<![A-Za-z0-9_.-]){_NAME}[A-Za-z0-9_-]{{0,20}}["']?\s{{0,4}}(?:=>|:=|[:=])\s{{0,4}})"""
        r"""(?=[^\s"',;]{0,200}[0-9])[^\s"',;(){}\[\]<>\\]{8,500}""",
        r"(://[^/\s:@]{0,100}:)[^/\s@]{3,300}(?=@)",
        r"(\b(?:bearer|basic|token)\s{1,4})[A-Za-z0-9+/_.~=-]{16,2000}",
        r"((?:--password|--token|--secret|-u\s{0,2}[^\s:]{1,60}:|sshpass -p)[ =]?)[^\s]{4,300}",
        r"(^machine\s{1,4}\S{1,200}\s{1,4}login\s{1,4}\S{1,200}\s{1,4}password\s{1,4})\S{1,200}",
    )
)
"""Patterns whose first group is kept: a name or a scheme, followed by the secret."""
