import { execFile, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { ExecutionContext } from 'ava'
import { cleanEnv, temporaryDirectory } from '../../fixtures/rsm.ts'
import { until } from '../until.ts'

const execute = promisify(execFile)

const isThere = (program: string) =>
  spawnSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' }).status === 0

/** The programs that the machine lacks; tests that need them are skipped (2026-11-21). */
export const missing = (...programs: string[]): string[] => programs.filter((name) => !isThere(name))

/** A window of tmux, which is a complete terminal, with a bash in it. */
export interface Window {
  /** Home directory of its shell. */
  readonly home: string
  type(text: string): Promise<void>
  /** Keys by tmux names: `Enter`, `C-z`. */
  press(...keys: string[]): Promise<void>
  resize(cols: number, rows: number): Promise<void>
  /** The visible lines, with their colours, and the cursor position. */
  screen(): Promise<string>
  /** The visible lines, without colours. */
  text(): Promise<string>
  /** Resolves once the visible lines, without colours, match. */
  shows(pattern: RegExp): Promise<void>
}

export async function openWindow(
  t: ExecutionContext,
  env: Record<string, string> = {},
  [cols, rows] = [100, 30],
): Promise<Window> {
  const home = temporaryDirectory(t)
  const socket = join(home, 'tmux')
  const tmux = async (...words: string[]) =>
    (await execute('tmux', ['-S', socket, '-f', '/dev/null', ...words], { env: cleanEnv(home, env) })).stdout
  const size = ['-x', String(cols), '-y', String(rows)]
  // The shell would write its history at its end, into a directory that is being removed.
  await tmux('new-session', '-d', ...size, "cd; HISTFILE= PS1='local> ' exec bash --norc --noprofile")
  t.teardown(() => tmux('kill-server').catch(() => undefined))
  const lines = () => tmux('capture-pane', '-p')
  return {
    home,
    async type(text) {
      await tmux('send-keys', '-l', text)
    },
    async press(...keys) {
      await tmux('send-keys', ...keys)
    },
    async resize(wide, high) {
      await tmux('resize-window', '-x', String(wide), '-y', String(high))
    },
    screen: async () =>
      (await tmux('capture-pane', '-p', '-e')) +
      (await tmux('display-message', '-p', '#{cursor_x},#{cursor_y}')),
    text: lines,
    async shows(pattern) {
      let shown = ''
      await until('the screen', async () => pattern.test((shown = await lines()))).catch(() => {
        throw new Error(`the screen does not show ${pattern}:\n${shown}`)
      })
    },
  }
}
