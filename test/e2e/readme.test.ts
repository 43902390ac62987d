import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import test, { type ExecutionContext } from 'ava'
import { cleanEnv, temporaryDirectory } from '../fixtures/rsm.ts'

/** Lines that are not run here, each with what runs it. */
const elsewhere: readonly (readonly [line: RegExp, where: string])[] = [
  [
    /^npm ci && npm (start|link|test)$/,
    'CI installs, builds and tests; first-contact.test.ts runs quickstart',
  ],
  [/^rsm terminal web1( --run-as|$)/, 'terminal.test.ts, in tmux'],
  [/^rsm tui$/, 'tui.test.ts, in tmux'],
  [/^export RSM_URL=/, 'a server that is not there'],
]

/** The commands of the README's console blocks in their order: a line that goes on begins with `>` or with blanks. */
function commandsOf(text: string): string[] {
  const found: string[] = []
  for (const [, block = ''] of text.matchAll(/^```console\n([\s\S]*?)^```$/gm)) {
    for (const line of block.split('\n')) {
      if (line.startsWith('$ ')) found.push(line.slice(2))
      else if (/^(> | {4})/.test(line) && found.length > 0)
        found.push(`${found.pop()}\n${line.replace(/^> /, '')}`)
    }
  }
  return found.map((command) => command.replace(/ +# .*$/gm, '').trim())
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as { port: number }
  server.close()
  await once(server, 'close')
  return port
}

function isAlive(group: number): boolean {
  try {
    return process.kill(group, 0)
  } catch {
    return false
  }
}

/** One shell for all lines, as the reader has it; what it starts in the background ends with it. */
function startShell(t: ExecutionContext, home: string) {
  const bin = join(home, 'bin')
  mkdirSync(bin)
  writeFileSync(join(bin, 'rsm'), `#!/bin/sh\nexec '${process.execPath}' '${resolve('bin/run.js')}' "$@"\n`)
  chmodSync(join(bin, 'rsm'), 0o755)
  const env = cleanEnv(home, {
    RSM_DATA_DIR: join(home, 'server'),
    PATH: `${bin}:${process.env['PATH'] ?? ''}`,
  })
  const shell = spawn('bash', ['--norc', '--noprofile'], { cwd: home, env, detached: true })
  let shown = ''
  const note = (data: Buffer) => (shown += data.toString())
  shell.stdout.on('data', note)
  shell.stderr.on('data', note)
  t.teardown(async () => {
    const group = -(shell.pid ?? 0)
    process.kill(group, 'SIGTERM')
    // Server and agents write until they have ended, into what is removed after this.
    while (isAlive(group)) await delay(50)
  })
  const untilShown = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(shown)
      if (match !== null) return match
      if (shell.exitCode !== null || shell.signalCode !== null)
        throw new Error(`the shell ended before it showed ${pattern}: ${shown.slice(-2000)}`)
      await Promise.race([once(shell.stdout, 'data'), once(shell.stderr, 'data'), once(shell, 'close')])
    }
  }
  let count = 0
  return {
    untilShown,
    background: (command: string) => shell.stdin.write(`${command} </dev/null &\n`),
    /** Answers what was shown since, and the exit code. */
    async run(command: string): Promise<{ exit: number; text: string }> {
      const from = shown.length
      const mark = `end-of-command-${++count}`
      shell.stdin.write(`{\n${command}\n} </dev/null\necho "${mark}:$?"\n`)
      const [, exit = ''] = await untilShown(new RegExp(`${mark}:(\\d+)`))
      return { exit: Number(exit), text: shown.slice(from, shown.lastIndexOf(mark)) }
    },
  }
}

// Skipped where curl or jq is missing: the README shows both.
const missing = ['curl', 'jq'].find((program) => spawnSync(program, ['--version']).error)
const whereThere = missing === undefined ? test : test.skip

whereThere('every command of the README does what it says, one after the other', async (t) => {
  const home = temporaryDirectory(t)
  const port = await freePort()
  const shell = startShell(t, home)
  for (const name of ['deploy.sh', 'long-job.sh'])
    writeFileSync(join(home, name), 'echo "on $(hostname) with $VERSION"\n')
  let password = ''
  let taskId = ''
  let sessionId = ''
  let ran = 0
  for (const written of commandsOf(readFileSync('README.md', 'utf8'))) {
    if (elsewhere.some(([line]) => line.test(written))) continue
    const command = written
      .replaceAll('18080', String(port))
      .replaceAll('/tmp/web$i', `${home}/web$i`)
      .replaceAll('TASK', taskId)
      .replaceAll('SESSION', sessionId)
      .replaceAll('"…"', JSON.stringify(password))
    ran++
    if (written === 'rsm server start') {
      shell.background(`${command} --port ${port}`)
      ;[, password = ''] = await shell.untilShown(/with the password (\S+)/)
      await shell.untilShown(/rsm server listening on http/)
      continue
    }
    const asked = written.startsWith('rsm login')
      ? ` --username admin --password-stdin <<< '${password}'`
      : ''
    const { exit, text } = await shell.run(command + asked)
    // A busy machine is something to complain of.
    const meant = written === 'rsm hosts doctor' ? [0, 1] : [0]
    if (!t.true(meant.includes(exit), `${command}: exit ${exit}\n${text}`)) return
    taskId = /"?\b(01[0-9A-HJKMNP-TV-Z]{24})\b/.exec(text)?.[1] ?? taskId
    if (written.startsWith('rsm hosts wait'))
      for (const name of ['web1', 'web2', 'web3']) t.regex(text, new RegExp(`${name} +(ONLINE|WARNING)`))
    if (written === 'rsm recordings list')
      sessionId = /^([\w-]{20,}) /m.exec(text.replace(/^SESSION.*$/m, ''))?.[1] ?? ''
  }
  t.true(ran > 20, `${ran} commands were run`)
  t.not(sessionId, '')
})
