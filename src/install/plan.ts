import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import { type Change, directoryChange, fileChange, programChange, readText } from './change.ts'
import {
  dataDirOf,
  type Program,
  packagedProgram,
  quoted,
  readEnvFile,
  type Service,
  type Settings,
  writeEnvFile,
} from './service.ts'
import { dropInText, type Systemd, unitText } from './systemd.ts'

export interface InstallRequest {
  readonly service: Service
  /** By environment variable; missing ones keep the value of the last installation. */
  readonly settings: Settings
  readonly token: string | undefined
  readonly program: Program
  readonly systemd: Systemd | null
  /** Changes to make before all others. */
  readonly first?: readonly Change[]
  /** Directories that the unit must be able to write, besides its own. */
  readonly writable?: readonly string[]
}

export interface Plan {
  readonly changes: readonly Change[]
  readonly settings: Settings
  /** sh command that runs the service without systemd. */
  readonly line: string
  writeSettings(settings: Settings): void
}

/** The settings of the last installation, overridden by the new ones. */
export function mergedSettings({ envFile }: Service, settings: Settings): Map<string, string> {
  return new Map([...readEnvFile(readText(envFile) ?? ''), ...settings])
}

/** systemd version to assume if none runs: the newest. */
const anySystemd = 999

export function planOf(request: InstallRequest): Plan {
  const { service, token, systemd, writable = [] } = request
  const { command, from } = request.program
  const settings = mergedSettings(service, request.settings)
  const [program = ''] = command
  const changes: Change[] = [...(request.first ?? [])]
  if (from !== null) changes.push(programChange(from, program))
  changes.push(directoryChange(service.configDir, service.isUsers ? 0o700 : 0o755))
  // Before the settings that refer to it.
  if (token !== undefined)
    changes.push(fileChange({ path: service.tokenFile, text: `${token}\n`, mode: 0o600, isSecret: true }))
  changes.push(fileChange({ path: service.envFile, text: writeEnvFile(settings), mode: 0o600 }))
  const isPackaged = program === packagedProgram && readText(service.packagedUnitFile) !== null
  // Also without systemd: the uninstallation reads what to remove from it.
  if (!isPackaged)
    changes.push(fileChange({ path: service.unitFile, text: unitText(service, command), mode: 0o644 }))
  const { dropInFile } = service
  const dropIn = dropInText(service, systemd?.version ?? anySystemd, writable)
  // Also clears a previous drop-in that is no longer needed.
  if (dropIn !== null || readText(dropInFile) !== null)
    changes.push(fileChange({ path: dropInFile, text: dropIn ?? '', mode: 0o644 }))
  const verb = service.name === 'agent' ? 'agent run' : 'server start'
  const dataDir = quoted('--data-dir', dataDirOf(service, settings))
  const line = `set -a; . ${service.envFile}; exec ${command.join(' ')} ${verb} --data-dir ${dataDir}`
  return {
    changes,
    settings,
    line,
    writeSettings(all) {
      fileChange({ path: service.envFile, text: writeEnvFile(all), mode: 0o600 }).apply()
    },
  }
}

/** The changes for people: before with a diff of each file, afterwards without. */
export function showPlan({ changes }: Plan, tense: 'would' | 'did'): string {
  const todo = changes.filter(({ state }) => state !== 'done')
  if (todo.length === 0) return 'nothing to change'
  if (tense === 'did') return todo.map(({ what }) => what).join('\n')
  return todo.flatMap(({ what, lines }) => [`would ${what}`, ...lines.map((line) => `  ${line}`)]).join('\n')
}

/** Whether something existing would be replaced, which needs consent. */
export const replaces = ({ changes }: Plan): boolean => changes.some(({ state }) => state === 'differs')

/** Returns whether anything changed. Errors: `unavailable` at the failed change; earlier ones stay. */
export function applyPlan({ changes }: Plan): boolean {
  const todo = changes.filter(({ state }) => state !== 'done')
  for (const change of todo) change.apply()
  return todo.length > 0
}

/** Errors: `forbidden` without root, for a system service. */
export function needRoot({ isUsers }: Service): void {
  if (isUsers || process.getuid?.() === 0) return
  throw new RsmError('forbidden', 'a system service requires root', {
    hint: 'run this with sudo; --dry-run shows what it would do, and rsm agent install --user installs an agent for you alone',
  })
}

/** Why a service ended, from its log: its own error, or its last line. */
function lastWords(log: string): string {
  const lines = log.split('\n')
  return lines.findLast((line) => line.startsWith('rsm: ')) ?? lines.at(-1) ?? ''
}

/** Milliseconds. */
const pollInterval = 250

/**
 * Polls until `isUp` returns a value. Errors: `unavailable` after `within` milliseconds, or as soon as the
 * service has ended twice, with its last log line.
 */
export async function untilUp<T>(
  { service, systemd, within }: { service: Service; systemd: Systemd; within: number },
  isUp: () => Promise<T | null>,
  whyNot: () => string,
): Promise<T> {
  const end = performance.now() + within
  for (;;) {
    const answer = await isUp()
    if (answer !== null) return answer
    const ends = Number(await systemd.ctl('show', '-p', 'NRestarts', '--value', service.unit))
    const isOver = performance.now() > end
    if (ends >= 2 || isOver) {
      const log = lastWords(await systemd.log(service.unit, 20))
      throw new RsmError(
        'unavailable',
        `${service.unit} ${ends >= 2 ? 'does not stay up' : `was started, but ${whyNot()} after ${within / 1000} s`}${log && `: ${log}`}`,
        {
          hint: `see systemctl ${service.isUsers ? '--user ' : ''}status ${service.unit}; it keeps restarting`,
        },
      )
    }
    await delay(pollInterval)
  }
}

/** Reloads the units and enables the service; `start` also starts it, or restarts it after changes. */
export async function enable(
  service: Service,
  systemd: Systemd,
  { start, changed }: { start: boolean; changed: boolean },
): Promise<void> {
  await systemd.ctl('daemon-reload')
  await systemd.ctl('enable', '--quiet', service.unit)
  if (!start) return
  await systemd.ctl('reset-failed', service.unit).catch(() => '')
  await systemd.ctl(changed ? 'restart' : 'start', service.unit)
}

/** A used token is useful only to a thief. */
export const dropToken = ({ tokenFile }: Service): void => rmSync(tokenFile, { force: true })
