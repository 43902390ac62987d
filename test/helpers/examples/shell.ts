import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join, resolve } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { ExecutionContext } from 'ava'
import { cleanEnv } from '../../fixtures/rsm.ts'

/**
 * The commands of a page's blocks, in order. In `console` they follow one of these prompts, and a continuation begins with `>`
 * or blanks. In `sh` every line is a command, up to the `done` of a loop.
 */
export function commandsOf(text: string, prompts: readonly string[] = ['$ ']): string[] {
  const found: string[] = []
  for (const [, kind, block = ''] of text.matchAll(/^```(console|sh)\n([\s\S]*?)^```$/gm)) {
    for (const line of block.split('\n')) {
      if (kind === 'sh') {
        if (/^( |done\b)/.test(line)) found.push(`${found.pop()}\n${line}`)
        else if (line !== '') found.push(line)
        continue
      }
      const prompt = prompts.find((each) => line.startsWith(each))
      if (prompt !== undefined) found.push(line.slice(prompt.length))
      else if (/^(> | {4})/.test(line) && found.length > 0)
        found.push(`${found.pop()}\n${line.replace(/^> /, '')}`)
    }
  }
  return found.map((command) => command.replace(/ +# .*$/gm, '').trim())
}

export async function freePort(): Promise<number> {
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

/** One shell for all lines, as the reader uses it; its background processes end with it. */
export function startShell(t: ExecutionContext, home: string) {
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
    // Server and agents write until they end, into a directory that is removed after this.
    while (isAlive(group)) await delay(50)
  })
  const untilShown = async (pattern: RegExp): Promise<RegExpExecArray> => {
    for (;;) {
      const match = pattern.exec(shown)
      if (match !== null) return match
      if (shell.exitCode !== null || shell.signalCode !== null)
        throw new Error(`the shell ended before it showed ${pattern}: ${shown.slice(-2000)}`)
      const heard = new AbortController()
      const options = { signal: heard.signal }
      await Promise.race([
        once(shell.stdout, 'data', options),
        once(shell.stderr, 'data', options),
        once(shell, 'close', options),
      ])
      heard.abort()
    }
  }
  let count = 0
  return {
    untilShown,
    background: (command: string) => shell.stdin.write(`${command} </dev/null &\n`),
    /** Returns the text shown since, and the exit code. */
    async run(command: string): Promise<{ exit: number; text: string }> {
      const from = shown.length
      const mark = `end-of-command-${++count}`
      shell.stdin.write(`{\n${command}\n} </dev/null\necho "${mark}:$?"\n`)
      const [, exit = ''] = await untilShown(new RegExp(`${mark}:(\\d+)`))
      return { exit: Number(exit), text: shown.slice(from, shown.lastIndexOf(mark)) }
    },
  }
}
