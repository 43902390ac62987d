import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import type { ExecutionContext } from 'ava'
import type * as nodePty from 'node-pty'
import { cleanEnv } from '../../fixtures/rsm.ts'

const { spawn } = createRequire(import.meta.url)('node-pty') as typeof nodePty

/** Longest wait without new output, in milliseconds. */
const patience = 90_000

/** The end of the output, for a message. */
const tail = (text: string) => JSON.stringify(text.slice(-4000))

/** A program with a terminal of its own. */
export interface OnPty {
  /** All output. */
  readonly shown: string
  readonly ended: Promise<number>
  type(text: string): void
  resize(cols: number, rows: number): void
  /** SIGKILL. */
  end(): void
  /** Resolves once the output, from `from` on, matches; returns the match. */
  shows(pattern: RegExp, from?: number): Promise<RegExpExecArray>
}

export const rsm = `${process.execPath} ${resolve('bin/run.js')}`

/** Printed when the line has ended: bash waits until it is read, because node-pty drops output 200 ms after its end. */
const over = '\u001b]over\u0007'

/** Runs a line of bash on a terminal. */
export function bashOnPty(
  t: Pick<ExecutionContext, 'teardown'>,
  line: string,
  home: string,
  env: Record<string, string> = {},
): OnPty {
  const script = `${line}\ncode=$?; printf '\\033]over\\007'; read -r; exit $code`
  const pty = spawn('/bin/bash', ['--norc', '--noprofile', '-c', script], {
    cols: 100,
    rows: 30,
    cwd: home,
    env: cleanEnv(home, { TERM: 'xterm-256color', SHELL: '/bin/bash', PS1: '$ ', ...env }),
  })
  let shown = ''
  let isOver = false
  let heard = () => {}
  let isRead = false
  pty.onData((data) => {
    if (isRead) return
    shown += data
    const end = shown.indexOf(over)
    if (end !== -1) {
      isRead = true
      shown = shown.slice(0, end)
      pty.write('\n')
    }
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
      for (;;) {
        const found = pattern.exec(shown.slice(from))
        if (found) return found
        if (isOver) throw new Error(`ended without ${pattern}: ${tail(shown)}`)
        let isPatient = true
        const later = setTimeout(() => {
          isPatient = false
          heard()
        }, patience)
        await new Promise<void>((settle) => {
          heard = settle
        })
        clearTimeout(later)
        if (!isPatient) throw new Error(`nothing new for ${patience} ms, and no ${pattern}: ${tail(shown)}`)
      }
    },
  }
}
