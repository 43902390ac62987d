import { rmSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { RsmError } from '../core/errors.ts'
import { type Change, directoryChange, fileChange, programChange, readText } from './change.ts'
import { type Program, packagedProgram } from './program.ts'
import { dataDirOf, quoted, readEnvFile, type Service, type Settings, writeEnvFile } from './service.ts'
import { dropInText, type Systemd, unitText } from './systemd.ts'

/** What an installation is to be. */
export interface InstallRequest {
  readonly service: Service
  /** By their variables; what is not given stays as the last installation had it. */
  readonly settings: Settings
  /** Of an agent that is to enroll. */
  readonly token: string | undefined
  readonly program: Program
  readonly systemd: Systemd | null
  /** What has to be there before all else. */
  readonly first?: readonly Change[]
  /** Directories that the unit has to be able to write, beyond its own. */
  readonly writable?: readonly string[]
}

export interface Plan {
  readonly changes: readonly Change[]
  /** All settings that will be in force. */
  readonly settings: Settings
  /** What runs the service without systemd, for sh. */
  readonly line: string
  /** Writes the file of settings again, at once. */
  writeSettings(settings: Settings): void
}

/** The settings of the last installation, with the new ones over them. */
export function mergedSettings({ envFile }: Service, settings: Settings): Map<string, string> {
  return new Map([...readEnvFile(readText(envFile) ?? ''), ...settings])
}

/** Newest systemd that a unit is written for where none runs. */
const anySystemd = 999

export function planOf(request: InstallRequest): Plan {
  const { service, token, systemd, writable = [] } = request
  const { command, from } = request.program
  const settings = mergedSettings(service, request.settings)
  const [program = ''] = command
  const changes: Change[] = [...(request.first ?? [])]
  if (from !== null) changes.push(programChange(from, program))
  changes.push(directoryChange(service.configDir, service.isUsers ? 0o700 : 0o755))
  // Before the settings that name it.
  if (token !== undefined)
    changes.push(fileChange({ path: service.tokenFile, text: `${token}\n`, mode: 0o600, isSecret: true }))
  changes.push(fileChange({ path: service.envFile, text: writeEnvFile(settings), mode: 0o600 }))
  const isPackaged = program === packagedProgram && readText(service.packagedUnitFile) !== null
  // Without systemd too: it says what an uninstallation has to remove.
  if (!isPackaged)
    changes.push(fileChange({ path: service.unitFile, text: unitText(service, command), mode: 0o644 }))
  const { dropInFile } = service
  const dropIn = dropInText(service, systemd?.version ?? anySystemd, writable)
  // One of before that nothing is left of must not hold either.
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

/** What it comes to: before it is done with each line of a file that goes or comes, afterwards without. */
export function showPlan({ changes }: Plan, tense: 'would' | 'did'): string {
  const todo = changes.filter(({ state }) => state !== 'done')
  if (todo.length === 0) return 'nothing to change'
  if (tense === 'did') return todo.map(({ what }) => what).join('\n')
  return todo.flatMap(({ what, lines }) => [`would ${what}`, ...lines.map((line) => `  ${line}`)]).join('\n')
}

/** Whether something that is there would be another: that takes consent. */
export const replaces = ({ changes }: Plan): boolean => changes.some(({ state }) => state === 'differs')

/** Answers whether anything was changed. Errors: `unavailable`, at the change that failed; those before it stay. */
export function applyPlan({ changes }: Plan): boolean {
  const todo = changes.filter(({ state }) => state !== 'done')
  for (const change of todo) change.apply()
  return todo.length > 0
}

/** Errors: `forbidden` for who may not write to the system. */
export function needRoot({ isUsers }: Service): void {
  if (isUsers || process.getuid?.() === 0) return
  throw new RsmError('forbidden', 'a service of the system takes root', {
    hint: 'run this with sudo; --dry-run shows what it would do, and rsm agent install --user installs an agent for you alone',
  })
}

/** Why a service ended, of what it logged: its own error, else its last line. */
function lastWords(log: string): string {
  const lines = log.split('\n')
  return lines.findLast((line) => line.startsWith('rsm: ')) ?? lines.at(-1) ?? ''
}

/** Milliseconds between two looks at what has been started. */
const pollInterval = 250

/**
 * Waits until `isUp` answers something. Errors: `unavailable` after `within` milliseconds, or as soon as the service has
 * ended twice, with the last that it logged.
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
          hint: `look at it: systemctl ${service.isUsers ? '--user ' : ''}status ${service.unit}; it keeps trying`,
        },
      )
    }
    await delay(pollInterval)
  }
}

/** Reads the units anew and starts the service at every boot; now too, unless it runs as it should. */
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

/** A token that was used is of no use to anyone but a thief. */
export const dropToken = ({ tokenFile }: Service): void => rmSync(tokenFile, { force: true })
