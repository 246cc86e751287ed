"""Words by which the guard reads calls: names of parameters, SQL, and what only looks at things."""

from __future__ import annotations


def split(text: str) -> frozenset[str]:
    return frozenset(text.split())


def words(name: str) -> frozenset[str]:
    """A list of words."""
    return split(_LISTS[name])


_LISTS = {
    "target_words": (
        "account accounts address addresses airline airport assignee attendee attendees author bcc beneficiary "
        "booking branch bucket calendar cc channel channels city client cluster company contact contacts country "
        "customer cwd database destination device dir directory domain email emails endpoint env environment event "
        "file filename filenames files folder group groups guest guests host hostname hotel iban id ids invitee "
        "invitees ip key link list location mailbox member members merchant mobile name names namespace number "
        "object order org organization origin owner participant participants path paths payee people person phone "
        "place project queue recipient recipients ref region remote repo repos repository reservation resource "
        "restaurant reviewer room sender server service shop site store supplier table target team ticket to topic "
        "uri url urls user username users vendor venue webpage website workspace"
    ),
    "content_words": (
        "answer body caption cmd code command comment content contents data description details html markdown memo "
        "message messages note notes payload prompt query question reason script signature sql statement subject "
        "summary template text title value values"
    ),
    "file_words": "cwd dir directory file filename filenames files folder path paths",
    "command_words": "bash cmd code command commands input script shell",
    "written_parameters": "body caption comment content contents description html markdown message note subject text",
    "sql_ends_tables": (
        "cross except fetch for full group having inner intersect join left limit natural offset on order outer "
        "right set straight_join union using values where window"
    ),
    "sql_keywords": (
        "abs against all and any as asc avg between binary both by case cast char coalesce collate columns concat "
        "count current current_date current_timestamp date datetime day decimal dense_rank desc describe distinct "
        "div double else end escape exists explain false first float following from group_concat hour if ifnull in "
        "int integer interval into is json_extract leading length like lower match max min minute mod month next "
        "not now null nullif only or over partition preceding quarter rank recursive regexp rlike rollup round row "
        "row_number rows second select separator show signed some sql_mode substr substring sum table tables text "
        "then time timestamp trailing true unbounded unknown unsigned upper varchar week when with xor year"
    ),
    "reading_verbs": (
        "get find list search read view fetch query check describe show calculate think count lookup look retrieve "
        "latest detail details inspect preview browse open visit ask explain validate verify test ping echo analyze "
        "compute compare summarize translate help"
    ),
    "reading_statements": "SELECT SHOW DESCRIBE EXPLAIN WITH USE VALUES",
    "reading_programs": (
        "ls cat echo find grep egrep fgrep zgrep rg ag fd sed awk gawk mawk head tail sort uniq wc cut tr xargs "
        "file diff cmp which whereis pwd cd whoami uname date printf test less more jq yq rev comm join nl md5sum "
        "sha1sum sha256sum sha512sum md5 stat who history tree du df ps top strings xxd hexdump od base64 base32 "
        "type locate readlink realpath basename dirname env printenv id groups w uptime free lsof netstat ss "
        "ifconfig ip hostname man info help seq bc dc expr tac paste column fold yes true false [ [[ exiftool "
        "binwalk nm objdump readelf ldd openssl git sleep wait time sudo for in do done if then else fi while set "
        "zcat bzcat xzcat zless ltrace strace tshark pdftotext identify"
    ),
    "file_readers": "cat head tail less more nl tac sed awk bat batcat view vim vi",
    "moving_programs": "cd pushd popd",
    "waiting_programs": "sleep wait start-sleep wait-for-it inotifywait usleep snooze",
    "waiting_words": "wait sleep pause delay await",
    "network_git": "fetch pull push clone ls-remote submodule lfs",
    "looking_git": (
        "status log diff show blame ls-files rev-parse describe grep shortlog reflog cat-file ls-tree ls-remote "
        "name-rev rev-list merge-base symbolic-ref for-each-ref count-objects help version whatchanged range-diff "
        "cherry show-ref show-branch diff-tree diff-index diff-files check-ignore check-attr var fsck verify-commit "
        "verify-tag annotate archive"
    ),
    "listing_git": "branch tag remote config stash worktree submodule notes bisect lfs bundle",
    "listing_words": (
        "list show status get view log -l --list -v -vv -a -r --all --remotes --show-current --get --get-all"
    ),
    "outside_programs": (
        "curl wget http ping nc ncat telnet ssh scp sftp rsync dig nslookup host traceroute ps top pgrep lsof "
        "netstat ss systemctl service docker podman kubectl helm date uptime free jobs nvidia-smi gh glab aws "
        "gcloud az terraform journalctl sleep wait wait-for-it dockerize pg_isready redis-cli mysqladmin tmux "
        "screen adb xcrun inotifywait watch start-sleep psql mysql mariadb mongosh mongo clickhouse-client cqlsh "
        "sqlcmd http https xh grpcurl websocat kcat kafka-topics etcdctl consul vault nomad heroku fly flyctl "
        "vercel netlify wrangler firebase supabase docker-compose podman-compose nerdctl minikube argocd flux oc "
        "eksctl doctl openstack rclone smbclient ftp lftp pidof fuser launchctl rc-service supervisorctl pm2 iostat "
        "vmstat"
    ),
}
