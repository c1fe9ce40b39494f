"""Programs that ask other machines, or a daemon that may be one."""

TABLE = r"""
ping ping6 host nslookup dig whois traceroute tracepath mtr: network; hosts; not -f -F -b --file
docker podman nerdctl: help; exact; network; values -l --log-level -p --project-name -f --file --env-file --profile
      --project-directory --ansi --progress --parallel --workdir; flags -D --debug --tls --tlsverify --noout --syslog
      --compatibility --dry-run --verbose --no-ansi; not -H --host -c --context --config --tlscacert --tlscert --tlskey
      --url --connection --showsecret
      --identity --remote --conmon --runtime --runtime-flag --storage-opt --storage-driver --root --runroot
      --imagestore --cpu-profile --memory-profile --module --hooks-dir --network-cmd-path --network-config-dir --tmpdir
      --volumepath --ssh --out --cni-path --cni-netconfpath --data-root --hosts-dir --cdi-spec-dirs --snapshotter
  ps|images|inspect|logs|top|stats|history|info|version|port|diff|events|search
  container ls|list|ps|inspect|logs|top|stats|port|diff
  image ls|list|inspect|history
  system info|df|events
  context ls|list|show|inspect
  network|volume|secret|config|node|plugin|service|stack|pod|machine ls|list|ps|inspect|logs|services|tasks
  manifest inspect
  trust inspect
  buildx ls|du|inspect|version: not --bootstrap
  buildx imagetools inspect
  builder ls
  compose config: needs --services --volumes --images --profiles --networks --hash --quiet -q; not -o --output
      --lock-image-digests --environment --variables
  compose ps|ls|images|logs|top|version|events|port|volumes|stats: values -p --project-name -f --file
      --env-file --profile --project-directory; not -o --output --lock-image-digests
docker-compose podman-compose: help; exact; network; values -p --project-name -f --file --env-file --profile
      --project-directory --ansi --progress --parallel --workdir; flags --compatibility --dry-run --verbose --no-ansi
      ; not -H --host -o --output --context
  ps|ls|images|logs|top|version|events|port|--version
  config: needs --services --volumes --images --profiles --networks --hash --quiet -q; not --environment --variables
helm: help; exact; network; values -n --namespace --kube-context --burst-limit --qps --kube-as-user --kube-as-group
      --kube-tls-server-name; flags --debug --kube-insecure-skip-tls-verify; not --kubeconfig --post-renderer
      --dependency-update --set-file --post-renderer-args --output-dir --registry-config --repository-config
      --repository-cache --kube-apiserver --kube-ca-file --kube-token
  list|ls|status|history|hist|version|env|lint|template|verify|--version
  get all|hooks|manifest|metadata|notes|values
  show all|chart|crds|readme|values
  inspect all|chart|crds|readme|values
  search hub|repo
  repo list|ls
  dependency|dep|dependencies list|ls
  plugin list|ls|verify
  install|upgrade|uninstall|rollback|delete|del: needs --dry-run; only --dry-run --namespace -n --debug --wait --install
      -i --atomic --version --values -f --set --set-string --create-namespace --generate-name -g --timeout
      --kube-context --output -o --description --devel --no-hooks --keep-history; values -n --namespace --version
      --values -f --set --set-string --timeout --kube-context --output -o --description
  completion bash|zsh|fish|powershell
auth0: help; exact; network; values --tenant; flags --debug --no-color --no-input; not -r --reveal-secrets
  apps|users|logs|actions|apis|roles|orgs|organizations|rules|tenants|domains|quickstarts|qs|attack-protection|
      protection|event-streams|log-streams|logs|network-acl|token-exchange
      show|list|ls|search|search-by-email|diff|versions|stats
  apis scopes list|ls
  roles permissions|perms list|ls
  users roles|blocks list|ls|show
  orgs members|roles|invitations list|ls|show
  protection|attack-protection|ap breached-password-detection|bpd|brute-force-protection|bfp|
      suspicious-ip-throttling|sit|bot-detection|bot show|list
  email templates|provider show
  universal-login|ul show
  universal-login|ul templates|prompts show
  logs tail
  api get: not -d --data -X --method
glab: help; exact; network; not -w --web
  mr|issue|repo|release|ci|pipeline|label|milestone|variable|schedule|snippet|cluster|user
      list|view|status|diff|get|trace|show|search|events
  variable get: secret
  variable list: not -F --output
  ci get: not --with-variables
  auth status: secret
  version
argocd flux istioctl linkerd: network; not --kubeconfig --output-dir
  app|cluster|repo|proj|account list|get|history|diff|logs|resources|manifests
  get all|kustomizations|helmreleases|sources|images|receivers|alerts
  version|check|proxy-status|stat
vault: network; not -address -output-curl-string; single
  status|version|read|list: secret
  secrets|auth|audit|policy list
  kv list
  kv metadata get
consul nomad: network; single; not -http-addr -address -token -token-file -ca-file -ca-cert -ca-path -client-cert
      -client-key
  members|info|version|status
  node|job|alloc status
  catalog datacenters|nodes|services
rabbitmqctl: network; not -n
  status|list_*|cluster_status|environment|report|version|ping|node_health_check
rabbitmqadmin: network
  list|show
restic borg: secret
rclone: network; only --json --long -R --recursive --max-depth --include --exclude --format -F --dirs-only --files-only
      --human-readable -v -vv -q --quiet --version --full --hash --one-way --size-only --fast-list --separator -s --csv
      --absolute --dir-slash; values --max-depth --include --exclude --format -F --separator -s
  ls|lsd|lsl|lsf|lsjson|size|about|version|listremotes|check|tree: like [^:,"][^,"]*
circleci: network; help
  context list
  orb list|info|source|validate
  version|diagnostic
velero: network; not --kubeconfig
  backup|restore|schedule|plugin|backup-location|snapshot-location get|describe|logs
  version
nats: network; not --creds
  stream|consumer|kv|object|server list|ls|info|report|state|subjects|find|status
fly flyctl heroku vercel netlify railway doctl linode-cli wrangler supabase firebase: help; network
  status|version|whoami
  apps|ps|releases|domains|logs|regions|addons|projects|sites|services|volumes|machine|machines|droplet|
      droplets|images list|ls|show|info|get
speedtest: secret
sshd: secret
"""
