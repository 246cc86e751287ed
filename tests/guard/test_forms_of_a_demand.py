"""What a sentence forbids is stopped in whatever form of the shell it is written, and its neighbours are not."""

from __future__ import annotations

from pathlib import Path

from toolmem.guard.decision import CheckedRule, against_rules
from toolmem.guard.tool_classes import class_schema
from toolmem.guard.view import view_of
from toolmem.sentences.said_conditions import condition_of

HERE = Path("/home/me/app")
SUDO = """\
sudo ls | sudo -n -u root ls | DEBIAN_FRONTEND=x sudo apt-get install y | A=1 B=2 sudo ls | time sudo ls
time -p sudo ls | if sudo -n true; then echo a; fi | if true; then sudo ls; fi | for f in a b; do sudo rm $f; done
while sudo ls; do x; done | until sudo ls; do sleep 1; done | case $x in a) sudo ls;; esac
case x in (a|b) echo; sudo ls ;; esac | (sudo ls) | { sudo ls; } | ! sudo ls | if ! sudo ls; then echo a; fi
f() { sudo ls; }; f | function f { sudo ls; } | coproc sudo ls | exec sudo ls | command sudo ls | builtin sudo ls
nice sudo ls | nice -n 5 sudo ls | nohup sudo ls & | timeout 5 sudo ls | timeout -s KILL 5 sudo ls
timeout --signal=KILL 5 sudo ls | env sudo ls | env -i A=1 sudo ls | env -u A sudo ls | stdbuf -oL sudo ls
xargs sudo rm | ls / xargs -n1 sudo rm | find . -exec sudo rm {} + | find . -ok sudo rm {} \\; | setsid sudo ls
sh -c 'sudo ls' | bash -lc "A=1 sudo ls" | eval sudo ls | echo $(sudo ls) | echo `sudo ls` | a && sudo ls
/usr/bin/sudo ls | \\sudo ls | s'u'do ls | alias s=sudo; s ls | x=sudo; $x ls | watch sudo ls | ssh host sudo ls
docker exec c sudo ls | echo a / sudo tee f | parallel sudo rm ::: a | flock /tmp/l sudo ls | script -c "sudo ls"
time nice -n 3 env A=b sudo ls | trap 'sudo ls' EXIT | bash <<E\\nsudo ls\\nE | echo 'sudo ls' / sh
ionice -c2 -n7 sudo ls | nohup timeout 5 nice sudo ls | strace -f -e trace=x sudo ls | exec -a n sudo ls
a || sudo ls | ls;sudo ls | ls &sudo ls | chrt -f 10 sudo ls | a=b;sudo ls | select x in a; do sudo ls; done
[ -f x ] && sudo ls | sudo -E env A=1 xargs rm | xvfb-run -a sudo ls | echo "$(time sudo ls)"
"""
NO_SUDO = """\
echo sudo | git commit -m 'use sudo' | man sudo | grep -r sudo . | cat sudo.log | ls /etc/sudoers | which sudo
echo 'sudo ls' | time ls sudo | env SUDO=1 ls | xargs echo sudo | for f in sudo; do echo $f; done
f() { echo sudo; }; f | nice ls sudo | case sudo in a) ls;; esac | find . -name sudo | timeout 5 ls sudo | sudoku
./sudo.sh | # sudo ls
"""
XARGS = """\
xargs rm | ls / xargs rm | ls / sudo xargs -0 rm | time xargs ls | env A=1 xargs ls
if true; then ls / xargs rm; fi | A=1 xargs ls | find . -print0 / xargs -0 -n1 ls | { xargs ls; } | (xargs ls)
! xargs ls | nohup xargs ls | sh -c 'ls / xargs rm' | x=xargs; $x ls
"""
NO_XARGS = """\
echo xargs | man xargs | grep xargs f | ls xargs | git log --grep xargs | find . -name 'xargs*'
"""
DELETE = """\
rm /srv/data/x | rm -rf /srv/data | rm -rf /srv/data/ | rm -rf /srv//data/x | rm -rf //srv/data
rm -rf /srv/./data/x | rm -rf /srv/x/../data | rm -rf /srv/data/../data/x | cd /srv && rm -rf ./data
cd /srv && rm -rf data | cd /srv; rm -rf data/x | cd /srv/data && rm x | cd /srv/data && rm -rf *
cd /srv/data && rm -rf . | cd /srv/log && rm -rf ../data | pushd /srv; rm -r data | cd // && cd srv && rm data/x
(cd /srv && rm -r data) | find /srv/data -delete | find /srv/data -type f -name x -delete
find /srv//data -mtime +3 -delete | cd /srv/data && find . -delete | cd /srv/data; find -type f -delete
cd /srv && find data -delete | find /srv/data -exec rm {} + | find /srv/data -name x -exec rm -f {} \\;
find /srv/data -execdir rm {} ';' | find /srv/data -type f / xargs rm | find /srv/data -print0 / xargs -0 rm -f
find /srv/data / grep x / xargs rm | echo /srv/data/x / xargs rm | printf '%s\\n' /srv/data/x / xargs rm -f
printf '/srv/data/x\\0' / xargs -0 rm | echo x / xargs -I{} rm /srv/data/{} | echo /srv/data/x / xargs -I% rm -f %
ls /srv/data/* / xargs rm | echo /srv/data/x / sudo xargs rm | xargs rm <<< /srv/data/x
ls /srv/data / while read f; do rm "/srv/data/$f"; done | find /srv/data / while read -r f; do rm "$f"; done
for f in /srv/data/*; do rm "$f"; done | for f in /srv/data/a /srv/data/b; do rm -f $f; done
d=/srv/data; rm -rf $d | d=/srv; rm -rf $d/data/x | d=/srv/data; rm -rf "${d}/x" | sudo rm -rf /srv/data/x
git rm -r /srv/data/x | git -C /srv rm -r data | cd /srv && git rm -rf data/x | git -C /srv/data clean -fdx
cd /srv/data && git clean -fd | unlink /srv/data/x | shred -u /srv/data/x | rmdir /srv/data/x
rm -rf -- /srv/data/x | rm -rf '/srv/data/x y' | rm -r "/srv/data" | rm -rf /srv/{data,log}/x
rm /tmp/a /srv/data/b | sh -c 'rm -rf /srv/data' | bash -c "cd /srv && rm -r data" | eval "rm /srv/data/x"
timeout 5 rm -rf /srv/data/x | env A=1 rm /srv/data/x | nice rm /srv/data/x | if true; then rm /srv/data/x; fi
! rm /srv/data/x | parallel rm ::: /srv/data/x | parallel rm -f {} ::: /srv/data/a /srv/data/b
echo $(rm /srv/data/x) | f() { rm -rf /srv/data; }; f | rsync -a --delete /tmp/empty/ /srv/data/
trash /srv/data/x | trash-put /srv/data/x | gio trash /srv/data/x | rimraf /srv/data | busybox rm /srv/data/x
command rm /srv/data/x | \\rm /srv/data/x | /bin/rm /srv/data/x | ssh host rm -rf /srv/data/x
fd . /srv/data -x rm | fd x /srv/data -X rm -f | docker exec c rm -rf /srv/data/x | (rm -rf /srv/data/x)
{ rm /srv/data/x; } | rm -rf /srv/data/* | rm -rf /srv/data/.* | rm -rf /srv/*/x /srv/data/y | rm -rf /srv
rm -rf /srv/ | rm -r /srv/log/.. | rm -rf / | rm -rf /srv/d* | rm -rf /srv/dat? | rm -rf /srv/[d]ata
rm -rf /srv/* | cd /srv && rm -rf d* | cd /srv && rm -rf * | f() { rm -rf "$1"; }; f /srv/data/x
xargs -a list rm /srv/data/x | cat <<E / xargs rm\\n/srv/data/x\\nE | find // -path '/srv/data/*' -delete
Remove-Item -Recurse /srv/data/x | del /srv/data/x | tar --remove-files -cf x.tar /srv/data
cd /srv/data/sub && rm ../x | cd "/srv" && rm -rf "data/x" | pushd /srv/data && rm x && popd
cd /tmp && cd - ; rm /srv/data/x | echo "/srv/data/x" / tee l / xargs rm
"""
NO_DELETE = """\
ls /srv/data | cat /srv/data/x | rm -rf /srv/log | rm -rf /srv/database | rm -rf /tmp/srv/data
rm -rf /srv/data-old | rm x | cd /srv/data && ls | cd /srv && rm -rf log | cd /srv/data/.. && rm log
cd /srv/data && rm /tmp/x | find /srv/data -name x | find /srv/log -delete | find /srv/data -exec ls {} +
find /srv/data / xargs ls | echo /srv/data/x / xargs cat | git add /srv/data/x | cp /srv/data/x /tmp; rm /tmp/x
rm /tmp/x > /srv/data/log | echo 'rm /srv/data/x' | git commit -m 'rm /srv/data' | (cd /srv/data); rm x
pushd /srv/data; popd; rm x | for f in /srv/data/*; do cat "$f"; done; rm y | d=/srv/data; ls $d; rm x
git -C /srv/data status | rm -rf /srv/log/* | rm -rf /srv/l* | rm *.log | rm -rf build/ dist
ls /srv/data / while read f; do echo "$f"; done | mkdir /srv/data/new | rsync -a /srv/data/ /tmp/copy/
tar cf a.tar /srv/data | git clean -fd | f() { rm -rf "$1"; }; f /tmp/x | cd /srv/log && find . -delete
"""

SSH = """\
cat ~/.ssh/id | cat $HOME/.ssh/config | cat ${HOME}/.ssh/x | ls HOME/.ssh | cp HOME//.ssh/id /tmp
cd ~ && cat .ssh/x | cd ~/.ssh; cat id | cd HOME && rm -rf .ssh | tar cf x ~/.ssh
echo a >> ~/.ssh/authorized_keys | ssh-add ~/.ssh/id | grep -r x ~/.ssh | scp -i ~/.ssh/key a b:
find ~/.ssh -name x | less < ~/.ssh/config | sudo cat ~/./.ssh/x | cat ~/x/../.ssh/y
"""
NO_SSH = """\
cat ~/.sshrc | ls ~ | ssh host ls | cd ~ && ls | cat ~/ssh/x | cd ~/.ssh/..; ls | echo ssh
"""
ENV = """\
git add .env | git add -f ./config/.env | git commit .env -m x | cd config && git add .env | git stage .env
git add a .env b | git -C sub add .env | git add ./.e* | sudo git add .env | git add -- .env
A=1 git commit -m x -- .env | echo .env / xargs git add
"""
NO_ENV = """\
cat .env | git add .env.example | git add src | git commit -m 'ignore .env' | echo .env >> .gitignore
git rm --cached .env
"""
ETC = """\
echo a > /etc/x | cd /etc && echo a > x | tee /etc//x | cp a /etc/ | sed -i s/a/b/ /etc/hosts
echo a / sudo tee -a /etc/x | pushd /etc; touch x | echo /etc/x / xargs touch | cp -t /etc a | mv a ../../../etc/x
dd of=/etc/x | install -m 644 a /etc/b
"""
NO_ETC = """\
cat /etc/hosts | cp /etc/hosts /tmp | echo a > /tmp/etc | cd /etc; cat x | tee x < /etc/y
pushd /etc; popd; touch x
"""


def forms(text: str) -> list[str]:
    """One in each cell; `/` between blanks stands for a pipe."""
    cells = [cell.strip() for line in text.strip().splitlines() for cell in line.split(" | ")]
    cells = [cell.replace("HOME/", f"{Path.home()}/").replace("cd HOME", f"cd {Path.home()}") for cell in cells]
    return [cell.replace(" / ", " | ").replace("\\n", "\n") if cell != "rm -rf /" else cell for cell in cells]


def verdict(sentence: str, text: str, tool: str = "Bash") -> str:
    made = condition_of(sentence, [class_schema("@shell")])
    assert made.when, made.reason
    rules = [CheckedRule("r", sentence, made.effect, when) for when in made.when.values()]
    found = against_rules(rules, view_of(tool, {"command": text, "description": "x"}, directory=HERE), "enforce")
    return found[0].action if found else "allow"


FORBIDDEN = [
    *(("Never use sudo.", each) for each in forms(SUDO)),
    *(("Never use xargs.", each) for each in forms(XARGS)),
    *(("Never delete files in /srv/data.", each) for each in forms(DELETE)),
    *(("Don't touch ~/.ssh.", each) for each in forms(SSH)),
    *(("Never commit secrets or .env files.", each) for each in forms(ENV)),
    *(("Never write to /etc.", each) for each in forms(ETC)),
]
HARMLESS = [
    *(("Never use sudo.", each) for each in forms(NO_SUDO)),
    *(("Never use xargs.", each) for each in forms(NO_XARGS)),
    *(("Never delete files in /srv/data.", each) for each in forms(NO_DELETE)),
    *(("Don't touch ~/.ssh.", each) for each in forms(NO_SSH)),
    *(("Never commit secrets or .env files.", each) for each in forms(NO_ENV)),
    *(("Never write to /etc.", each) for each in forms(NO_ETC)),
]


def test_what_is_forbidden_is_stopped_in_every_form() -> None:
    assert len(FORBIDDEN) > 200
    assert [case for case in FORBIDDEN if verdict(*case) == "allow"] == []


def test_what_is_near_it_is_not_stopped() -> None:
    assert len(HARMLESS) > 70
    assert [case for case in HARMLESS if verdict(*case) != "allow"] == []
