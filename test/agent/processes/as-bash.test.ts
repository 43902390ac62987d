import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ExecutionContext } from 'ava'
import { dropTo, findAccount, ownAccount } from '../../../src/agent/processes/account.ts'
import { searchPath } from '../../../src/agent/processes/programs.ts'
import { linkedAgent } from '../../helpers/agents/agent.ts'
import { modes } from '../../helpers/agents/modes.ts'

/** Prints everything a script can see of itself, then runs itself again by `$0`. */
const portrait = `#!/bin/bash
echo "named \${0##*/}, \${BASH_SOURCE[0]##*/}, with $# arguments: $*"
[[ "\${BASH_SOURCE[0]}" == "$0" ]] && echo main
sha256sum <"$0"
echo "in $PWD, $(pwd -P), and before in \${OLDPWD-nothing}"
read -r _ _ _ _ group session _ </proc/$$/stat
echo "leads its group: $((group == $$)), its session: $((session == $$))"
for fd in /proc/$$/fd/*; do echo "descriptor \${fd##*/}"; done
readlink /proc/$$/fd/0
env | grep -v ^RSM_ | sort
umask; { ulimit -a; ulimit -Ha; } | grep -v 'open files'; nice; cat /proc/self/oom_score_adj; trap -p
grep -E '^(SigBlk|SigIgn|Cpus_allowed_list)' /proc/self/status
[[ "\${1-}" == again ]] || "$0" again 'a  b'
echo "at line $LINENO"
`
const workDir = '/usr/share'
const params = { P: "it's $(id) `id` \\ two\nlines", EMPTY: '' }

/** Output of `cd DIR; bash NAME` as a user. */
async function reference(t: ExecutionContext, user: string | undefined, name: string): Promise<string> {
  const directory = mkdtempSync('/var/tmp/rsm-as-bash-')
  t.teardown(() => rmSync(directory, { recursive: true }))
  chmodSync(directory, 0o755)
  const file = join(directory, name)
  writeFileSync(file, portrait)
  chmodSync(file, 0o755)
  const account = user === undefined ? ownAccount() : await findAccount(user)
  const [program = '', ...words] = [
    ...(user === undefined ? [] : dropTo(account)),
    'setsid',
    'sh',
    '-c',
    'umask 022; cd -- "$1"; unset OLDPWD; exec bash "$2"',
    'sh',
    workDir,
    file,
  ]
  const env = {
    ...params,
    PATH: searchPath,
    HOME: account.home,
    USER: account.name,
    LOGNAME: account.name,
    SHELL: account.shell,
    LANG: process.env['LANG'] ?? 'C.UTF-8',
  }
  const { stdout, stderr } = spawnSync(program, words, {
    env,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  t.is(stderr, '')
  return stdout
}

const gate = { script: 'true', scriptType: 'BASH' as const, timeout: 60, retries: 0, intervalSeconds: 0 }

const named = { script: portrait, scriptName: 'deploy.sh' }

for (const [mode, options, on] of modes)
  for (const [how, name, request] of [
    ['alone', 'deploy.sh', named],
    ['with gates', 'deploy.sh', { ...named, verify: gate, rollback: gate }],
    ['as a gate', 'script', { script: 'true', verify: { ...gate, script: portrait } }],
  ] as const)
    on(`a script runs like cd DIR; bash FILE: sandbox ${mode}, ${how}`, async (t) => {
      const { server, agent } = await linkedAgent(t, options)
      server.execute(agent.agentId, { taskId: 'portrait', workDir, params, ...request })
      t.like(await server.completed('portrait'), { status: 'SUCCESS', exitCode: 0, survivors: [] })
      t.is(server.text('portrait'), await reference(t, options.runAs, name))
      t.is(server.text('portrait', 'stderr'), '')
    })
