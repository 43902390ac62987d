#!/usr/bin/env node
// Records the animation at the top of the README: a server, five agents and examples/first-steps, typed in tmux.
//
//   npm run build && node bench/cast/record.js [docs/start/cast.svg]
//
// Takes about a minute. Needs tmux. Everything lives in a temporary directory and on a free port.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { stripVTControlCharacters } from 'node:util'
import { drawCast } from './svg.js'

const root = resolve(import.meta.dirname, '../..')
const out = resolve(process.argv[2] ?? join(root, 'docs/start/cast.svg'))
const panes = [
  { title: 'you', columns: 92, rows: 18 },
  { title: 'the server', columns: 92, rows: 7 },
]
/** Longest time without a change that is shown, in seconds. */
const longestRest = 1.2
const patience = 40_000

async function freePort(wanted) {
  const server = createServer().listen(wanted, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address()
  server.close()
  await once(server, 'close')
  return port
}

const home = mkdtempSync(join(tmpdir(), 'rsm-cast-'))
const socket = join(home, 'tmux')
const port = await freePort(18_080).catch(() => freePort(0))
const url = `http://127.0.0.1:${port}`
const password = 'a password for the cast'
mkdirSync(join(home, 'bin'))
const program = join(home, 'bin/rsm')
writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${root}/bin/run.js' "$@"\n`)
chmodSync(program, 0o755)
const first = join(home, 'first-steps')
cpSync(join(root, 'examples/first-steps'), first, { recursive: true })
// Keep out of the real home directory.
for (const script of ['deploy.sh', 'check.sh', 'rollback.sh'])
  writeFileSync(join(first, script), readFileSync(join(first, script), 'utf8').replaceAll('$HOME', home))
const env = {
  PATH: `${join(home, 'bin')}:${process.env['PATH']}`,
  HOME: home,
  LANG: 'C.UTF-8',
  PS1: '$ ',
  PS2: '> ',
  TERM: 'xterm-256color',
  RSM_PORT: String(port),
  RSM_DATA_DIR: join(home, 'server'),
  RSM_LOG_LEVEL: 'ERROR',
  RSM_ADMIN_PASSWORD: password,
}
const log = openSync(join(home, 'log'), 'w')
const agents = []

function rsm(words, more = {}) {
  const { status, stdout, stderr } = spawnSync('rsm', words, {
    env: { ...env, ...more },
    encoding: 'utf8',
    cwd: first,
  })
  if (status !== 0) throw new Error(`rsm ${words.join(' ')}: exit ${status}\n${stdout}${stderr}`)
  return stdout.trim()
}
function tmux(...words) {
  const { status, stdout, stderr } = spawnSync('tmux', ['-S', socket, '-f', '/dev/null', ...words], {
    env,
    encoding: 'utf8',
    cwd: first,
  })
  if (status !== 0) throw new Error(`tmux ${words.join(' ')}: ${stderr}`)
  return stdout
}
const shown = (pane) => tmux('capture-pane', '-p', '-e', '-t', `p${pane}`).split('\n')
const plain = (pane) => stripVTControlCharacters(shown(pane).join('\n'))

const frames = []
let isRecording = false
function look() {
  const now = panes.map((_, pane) => shown(pane))
  const last = frames.at(-1)
  if (last === undefined || JSON.stringify(now) !== JSON.stringify(last.panes))
    frames.push({ seen: performance.now() / 1000, panes: now, rest: 0 })
}
/** Lets the viewer read. */
const hold = (seconds) => {
  look()
  frames.at(-1).rest = seconds
}
async function until(pane, pattern) {
  for (const since = performance.now(); !pattern.test(plain(pane)); await delay(40)) {
    if (isRecording) look()
    if (performance.now() - since > patience) throw new Error(`${pattern} did not come:\n${plain(pane)}`)
  }
  if (isRecording) look()
}
async function type(pane, text) {
  for (const part of text.match(/.{1,3}/g) ?? []) {
    tmux('send-keys', '-t', `p${pane}`, '-l', '--', part)
    await delay(60)
    look()
  }
  tmux('send-keys', '-t', `p${pane}`, 'Enter')
}
const clear = (pane) => tmux('send-keys', '-t', `p${pane}`, 'C-l')

async function setUp() {
  for (const [pane, { columns, rows }] of panes.entries())
    tmux(
      'new-session',
      '-d',
      '-s',
      `p${pane}`,
      '-x',
      String(columns),
      '-y',
      String(rows),
      'bash',
      '--norc',
      '--noprofile',
    )
  tmux('set', '-g', 'status', 'off')
  for (const [pane, { columns, rows }] of panes.entries())
    tmux('resize-window', '-t', `p${pane}`, '-x', String(columns), '-y', String(rows))
  tmux('send-keys', '-t', 'p1', 'rsm server start &', 'Enter')
  await until(1, /listening on/)
  const login = spawnSync('rsm', ['login', url, '--username', 'admin', '--password-stdin'], {
    env,
    input: password,
  })
  if (login.status !== 0) throw new Error(login.stderr.toString())
  const token = rsm(['hosts', 'join', '--max-uses', '5', '--token'])
  for (const name of ['web1', 'web2', 'web3', 'web4', 'db1'])
    agents.push(
      spawn('rsm', ['agent', 'run', '--url', url, '--hostname', name, '--data-dir', join(home, name)], {
        env: { ...env, RSM_AGENT_ENROLL_TOKEN: token },
        stdio: ['ignore', log, log],
      }),
    )
  rsm(['hosts', 'wait', '--new', 'web[1-4],db1'])
  rsm(['clusters', 'add', 'web', '--hosts', 'web[1-4]'])
  tmux('send-keys', '-t', 'p1', 'Enter')
}

const deploy = '--script deploy.sh --verify check.sh --rollback rollback.sh'
async function play() {
  clear(0)
  await until(0, /^\$\n/)
  isRecording = true
  look()
  await type(0, 'rsm exec -g web -b -- uname -sr')
  await until(0, /4 SUCCESS[^]*\n\$\n/)
  hold(2)
  await type(0, '# A bad version stops at the first host, and is rolled back there.')
  await type(0, 'rsm exec -g web --batch-size 1,50% -p VERSION=1.2.4-bad \\')
  await until(0, /\n>\n/)
  await type(0, `  ${deploy}`)
  await until(0, /SKIPPED in [^]*\n\$\n/)
  hold(4)
  clear(0)
  await until(0, /^\$\n/)
  await type(0, '# A job keeps running while the server is killed.')
  await type(0, "rsm exec -w 'web[1-2]' --script long-job.sh")
  await until(0, /web2: step 3 /)
  await type(1, 'kill -9 %1')
  await until(0, /connection/)
  tmux('send-keys', '-t', 'p1', 'Enter')
  await until(1, /Killed/)
  hold(2)
  await type(1, 'rsm server start')
  await until(0, /2 SUCCESS[^]*\n\$\n/)
  hold(3)
  clear(0)
  await type(0, 'rsm tui')
  await until(0, /SUCCESS.*long-job/)
  hold(4)
}

try {
  await setUp()
  rsm(['exec', '-q', '-g', 'web', '--script', 'deploy.sh', '-p', 'VERSION=1.2.3'])
  await play()
  let at = 0
  const timed = frames.map(({ seen, rest, panes: content }, index) => {
    const begins = at
    const next = frames[index + 1]?.seen ?? seen
    at += Math.max(rest, Math.min(next - seen, longestRest))
    return { at: begins, panes: content }
  })
  const svg = drawCast(timed, panes, Math.ceil(at))
  writeFileSync(out, svg)
  process.stdout.write(`${out}: ${Math.ceil(at)} s, ${frames.length} frames, ${svg.length} bytes\n`)
} finally {
  for (const agent of agents) agent.kill()
  spawnSync('tmux', ['-S', socket, 'kill-server'])
  await delay(1000)
  rmSync(home, { recursive: true, force: true, maxRetries: 5 })
}
