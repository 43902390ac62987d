import { execFile, execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import { RsmError } from '../core/errors.ts'
import { ownText } from '../disk/own-files.ts'
import type { Service } from './service.ts'

/** First systemd version with DelegateSubgroup. */
const delegateSubgroup = 254

/** Milliseconds for a start or stop: units have 30 s to stop. */
const patience = 90_000

/** Settings that only the system manager supports, or that a user service does not need. */
const systemOnly = new Set([
  'After',
  'Wants',
  'StateDirectory',
  'StateDirectoryMode',
  'LimitNOFILE',
  'OOMScoreAdjust',
  'OOMPolicy',
])

const run = promisify(execFile)

export interface Systemd {
  readonly version: number
  /** Runs `systemctl WORDS…`; resolves to its output. Errors: `unavailable` with its own message. */
  ctl(...words: string[]): Promise<string>
  log(unit: string, lines: number): Promise<string>
}

/** Null if systemd does not run, or does not manage services of this user. */
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

/** The unit of `packaging/units` adapted to this host; `command`: the words before `server start`. */
export function unitText(service: Service, command: readonly string[]): string {
  const { isUsers, envFile, dataDir, dataVariable, unit } = service
  const lines = ownText(`packaging/units/${unit}.service`)
    .split('\n')
    .filter((line) => !(isUsers && systemOnly.has(line.split('=')[0] ?? '')))
    .map((line) => {
      if (line.startsWith('ExecStart='))
        return line.replace('/usr/bin/rsm', () => command.map(execWord).join(' '))
      if (line.startsWith('EnvironmentFile=')) return `EnvironmentFile=-${envFile}`
      if (line.startsWith(`Environment=${dataVariable}=`)) return `Environment=${dataVariable}=${dataDir}`
      return isUsers && line === 'WantedBy=multi-user.target' ? 'WantedBy=default.target' : line
    })
  return lines.join('\n').replaceAll('/etc/rsm/', () => `${service.configDir}/`)
}

/**
 * Drop-in of this host for a system unit, ours or a package's: additional writable directories, and settings
 * that only a newer systemd supports. Null if empty.
 */
export function dropInText(
  { name, isUsers }: Service,
  systemdVersion: number,
  writable: readonly string[],
): string | null {
  const lines = writable.map((path) => `ReadWritePaths=${pathWord(path)}`)
  if (name === 'agent' && systemdVersion >= delegateSubgroup)
    lines.push(
      '# The agent beside its scripts, not above them, so that --limit works.',
      'DelegateSubgroup=agent',
    )
  return isUsers || lines.length === 0 ? null : ['[Service]', ...lines, ''].join('\n')
}

/** A word of ExecStart (systemd.service(5)). */
const execWord = (text: string) => {
  const escaped = text.replaceAll('%', '%%').replaceAll('$', '$$$$')
  return /^[\w./@:+%$-]+$/.test(text) ? escaped : `"${escaped.replaceAll(/[\\"]/g, '\\$&')}"`
}

/** A path of ReadWritePaths (systemd.exec(5)). */
const pathWord = (path: string) => {
  const escaped = path.replaceAll('%', '%%')
  return /[\s"'\\]/.test(path) ? `"${escaped.replaceAll(/[\\"]/g, '\\$&')}"` : escaped
}
