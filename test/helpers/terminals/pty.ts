import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import type * as nodePty from 'node-pty'
import { cleanEnv } from '../../fixtures/rsm.ts'

const { spawn } = createRequire(import.meta.url)('node-pty') as typeof nodePty

const patience = 90_000

/** A program with a terminal of its own. */
export interface OnPty {
  /** All that it has shown. */
  readonly shown: string
  readonly ended: Promise<number>
  type(text: string): void
  resize(cols: number, rows: number): void
  /** SIGKILL. */
  end(): void
  /** Resolves once what was shown, from `from` on, matches; answers the match. */
  shows(pattern: RegExp, from?: number): Promise<RegExpExecArray>
}

export const rsm = `${process.execPath} ${resolve('bin/run.js')}`

/** Runs a line of bash on a terminal. */
export function bashOnPty(
  t: Pick<ExecutionContext, 'teardown'>,
  line: string,
  home: string,
  env: Record<string, string> = {},
): OnPty {
  const pty = spawn('/bin/bash', ['--norc', '--noprofile', '-c', line], {
    cols: 100,
    rows: 30,
    cwd: home,
    env: cleanEnv(home, { TERM: 'xterm-256color', SHELL: '/bin/bash', PS1: '$ ', ...env }),
  })
  let shown = ''
  let isOver = false
  let heard = () => {}
  pty.onData((data) => {
    shown += data
    heard()
  })
  const ended = new Promise<number>((settle) => {
    pty.onExit(({ exitCode }) => {
      isOver = true
      heard()
      settle(exitCode)
    })
  })
  t.teardown(() => {
    if (!isOver) pty.kill('SIGKILL')
  })
  return {
    get shown() {
      return shown
    },
    ended,
    type: (text) => pty.write(text),
    resize: (cols, rows) => pty.resize(cols, rows),
    end: () => pty.kill('SIGKILL'),
    async shows(pattern, from = 0) {
      const began = performance.now()
      for (;;) {
        const found = pattern.exec(shown.slice(from))
        if (found) return found
        if (isOver) throw new Error(`ended without ${pattern}: ${JSON.stringify(shown)}`)
        const later = setTimeout(() => heard(), patience)
        await new Promise<void>((settle) => {
          heard = settle
        })
        clearTimeout(later)
        if (performance.now() - began > patience)
          throw new Error(`not within ${patience} ms: ${pattern}: ${JSON.stringify(shown)}`)
      }
    },
  }
}
