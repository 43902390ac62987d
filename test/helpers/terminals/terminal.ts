import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { resolve } from 'node:path'
import { cleanEnv } from '../../fixtures/rsm.ts'

/** Whether script(1) is installed: tests that need a terminal are skipped without it (2026-11-21). */
export const hasTerminal = spawnSync('script', ['--version']).status === 0

const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`

/**
 * Runs the real binary with a terminal of its own, made by script(1); `shown` is everything that the terminal shows. Each
 * answer is typed once its question is shown.
 */
export async function runOnTerminal(
  argv: readonly string[],
  home: string,
  env: Record<string, string>,
  answers: readonly (readonly [question: string, answer: string])[] = [],
): Promise<{ exit: number | null; shown: string }> {
  const command = [process.execPath, resolve('bin/run.js'), ...argv].map(quoted).join(' ')
  const child = spawn('script', ['--quiet', '--return', '--command', command, '/dev/null'], {
    env: cleanEnv(home, { TERM: 'dumb', SHELL: '/bin/sh', ...env }),
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const open = [...answers]
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    const [next] = open
    if (next === undefined || !shown.includes(next[0])) return
    open.shift()
    child.stdin.write(next[1])
  })
  const [exit] = (await once(child, 'close')) as [number | null]
  return { exit, shown }
}
