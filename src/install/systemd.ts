import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { RsmError } from '../core/errors.ts'

/** The manager of services on this host, of the system or of the user. */
export interface Systemd {
  readonly version: number
  /** Runs `systemctl WORDS…`; answers what it prints. Errors: `unavailable` with its own words. */
  ctl(...words: string[]): Promise<string>
  /** The newest lines that a unit logged. */
  log(unit: string, lines: number): Promise<string>
}

const run = promisify(execFile)
/** Milliseconds that a start or stop may take: units have 30 s to stop. */
const patience = 90_000

/** Null where systemd does not run, or manages nothing of this user. */
export function findSystemd(isUsers: boolean): Systemd | null {
  // sd_booted(3).
  if (!existsSync('/run/systemd/system')) return null
  const scope = isUsers ? ['--user'] : []
  let version: number
  try {
    if (isUsers) execFileSync('systemctl', ['--user', 'show-environment'], { stdio: 'ignore' })
    const said = execFileSync('systemctl', ['--version'], { encoding: 'utf8' })
    version = Number(/^systemd (\d+)/.exec(said)?.[1] ?? 0)
  } catch {
    return null
  }
  return {
    version,
    async ctl(...words) {
      try {
        return (await run('systemctl', [...scope, ...words], { timeout: patience })).stdout.trim()
      } catch (error) {
        const { stderr = '', message } = error as { stderr?: string; message: string }
        throw new RsmError('unavailable', `systemctl ${words.join(' ')}: ${stderr.trim() || message}`, {
          cause: error,
        })
      }
    },
    async log(unit, lines) {
      const words = [...scope, '-u', unit, '-n', String(lines), '--no-pager', '-o', 'cat']
      return run('journalctl', words, { timeout: patience }).then(
        ({ stdout }) => stdout.trim(),
        () => '',
      )
    },
  }
}
