import { openSync, statSync, writeSync } from 'node:fs'
import { ReadStream } from 'node:tty'
import { RsmError } from '../../core/errors.ts'
import { sanitizeLine } from '../text/sanitize.ts'

const longestAnswer = 4096

/**
 * Whether a person can be asked: the command was started from a terminal, even if one of its streams
 * goes elsewhere (`exec --all - < script`). A CI job may have a terminal that nobody looks at.
 */
export function isSomeoneThere(): boolean {
  return (process.stdin.isTTY || process.stderr.isTTY) && (process.env['CI'] ?? '') === ''
}

/**
 * Asks on the terminal. `hidden` shows nothing of the answer; Ctrl-C and an aborted `signal` reject with `interrupted`;
 * `instead` is the hint for where there is no terminal.
 */
export async function ask(
  question: string,
  options: { hidden?: boolean; instead: string; signal?: AbortSignal },
): Promise<string> {
  const { input, fd } = openTerminal(question, options.instead)
  const hidden = options.hidden === true
  let answer = ''
  // Raw mode for secrets only: elsewhere the terminal's own line editing serves better. Before the question, so that an
  // answer that comes at once is not shown.
  if (hidden) input.setRawMode(true)
  writeSync(fd, sanitizeLine(question))
  const interrupted = () => new RsmError('interrupted', 'interrupted')
  const over = new AbortController()
  try {
    return await new Promise<string>((resolve, reject) => {
      const once = { once: true, signal: over.signal }
      options.signal?.addEventListener('abort', () => reject(interrupted()), once)
      input.on('error', reject)
      input.on('end', () => reject(interrupted()))
      input.on('data', (bytes: Buffer) => {
        for (const key of bytes.toString('utf8')) {
          if (key === '\r' || key === '\n') return resolve(answer)
          if (key === '\u0003') return reject(interrupted())
          if (key === '\u0004' && answer === '') return reject(interrupted())
          if (key === '\u0015') answer = ''
          else if (key === '\u007f' || key === '\b') answer = answer.slice(0, -1)
          else if (answer.length < longestAnswer) answer += key
        }
      })
    })
  } finally {
    over.abort()
    if (hidden) {
      input.setRawMode(false)
      writeSync(fd, '\n')
    }
    input.destroy()
  }
}

/** A question is read from the terminal, never from stdin (contract §9). */
function openTerminal(question: string, instead: string): { input: ReadStream; fd: number } {
  try {
    const fd = openSync('/dev/tty', 'r+')
    return { input: new ReadStream(fd), fd }
  } catch {
    throw new RsmError('usage', `no terminal to ask "${question.trim().replace(/:$/, '')}"`, {
      hint: instead,
    })
  }
}

/** Anything but yes means no. */
export async function confirm(question: string, instead: string): Promise<boolean> {
  const answer = await ask(`${question} [y/N] `, { instead })
  return /^y(es)?$/i.test(answer.trim())
}

/** Deletions ask; without a terminal they need `--yes` (contract §9). */
export async function confirmRemoval(what: string, yes: boolean): Promise<void> {
  if (yes) return
  if (!(await confirm(`Remove ${what}?`, 'use --yes')))
    throw new RsmError('interrupted', 'nothing was removed')
}

/** Asks before a file that is there is replaced, unless `yes`. Errors: `usage` for what is no file, `interrupted` for a no. */
export async function mayReplace(file: string, yes: boolean): Promise<void> {
  const found = statSync(file, { throwIfNoEntry: false })
  if (found === undefined) return
  // A file that took the name of /dev/null would be the end of the machine.
  if (!found.isFile())
    throw new RsmError('usage', `${file} is ${found.isDirectory() ? 'a directory' : 'not a regular file'}`, {
      hint: 'name a file to write, or - for stdout',
    })
  if (!yes && !(await confirm(`Replace ${file}?`, `${file} is there already: use --yes to replace it`)))
    throw new RsmError('interrupted', `${file} is kept`)
}
