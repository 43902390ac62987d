import { existsSync, realpathSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { isSingleFile, ownPath } from '../disk/own-files.ts'

const dataVariables = { server: 'RSM_DATA_DIR', agent: 'RSM_AGENT_DATA_DIR' }

const plainValue = /^[\w./:@%+,=-]*$/

type ServiceName = 'server' | 'agent'

/** Names and paths of a service (contract §10). */
export interface Service {
  readonly name: ServiceName
  /** Service of the current user, without root. */
  readonly isUsers: boolean
  readonly unit: string
  readonly unitFile: string
  readonly packagedUnitFile: string
  /** Additions of this host to the unit, from a package or not. */
  readonly dropInFile: string
  readonly configDir: string
  readonly envFile: string
  /** An enrollment token, until it is used. */
  readonly tokenFile: string
  readonly dataDir: string
  readonly dataVariable: string
  /** Where the executable is installed, if it is somewhere else. */
  readonly prefix: string
}

/** Settings of a service, by environment variable. */
export type Settings = ReadonlyMap<string, string>

/** `root`: prefix of every path, for tests. */
export function systemService(name: ServiceName, root = ''): Service {
  const unit = `rsm-${name}`
  const configDir = `${root}/etc/rsm`
  return {
    name,
    isUsers: false,
    unit,
    ...unitFiles(unit, `${root}/etc/systemd/system`, `${root}/usr/lib/systemd/system`),
    configDir,
    envFile: join(configDir, `${name}.env`),
    tokenFile: join(configDir, `${name}.token`),
    dataDir: `${root}/var/lib/rsm/${name}`,
    dataVariable: dataVariables[name],
    prefix: `${root}/usr/local`,
  }
}

/** `base`: the user's directory for files of a kind. */
export function userService(name: ServiceName, base: (kind: 'CONFIG' | 'STATE') => string): Service {
  const unit = `rsm-${name}`
  const configDir = join(base('CONFIG'), 'rsm')
  return {
    name,
    isUsers: true,
    unit,
    ...unitFiles(unit, join(base('CONFIG'), 'systemd/user'), '/usr/lib/systemd/user'),
    configDir,
    envFile: join(configDir, `${name}.env`),
    tokenFile: join(configDir, `${name}.token`),
    dataDir: join(base('STATE'), 'rsm', name),
    dataVariable: dataVariables[name],
    prefix: join(homedir(), '.local'),
  }
}

const unitFiles = (unit: string, directory: string, packaged: string) => {
  const unitFile = join(directory, `${unit}.service`)
  return {
    unitFile,
    packagedUnitFile: join(packaged, `${unit}.service`),
    dropInFile: join(`${unitFile}.d`, 'rsm.conf'),
  }
}

export const dataDirOf = ({ dataVariable, dataDir }: Service, settings: Settings): string =>
  settings.get(dataVariable) ?? dataDir

/** Reads files of `writeEnvFile` or written by hand, with comments and either kind of quotes. */
export function readEnvFile(text: string): Map<string, string> {
  const settings = new Map<string, string>()
  for (const line of text.split('\n')) {
    const at = line.indexOf('=')
    const name = line
      .slice(0, Math.max(at, 0))
      .trim()
      .replace(/^export\s+/, '')
    if (!/^\w+$/.test(name)) continue
    const value = line.slice(at + 1).trim()
    const quote = value.length > 1 && value.at(0) === value.at(-1) ? value.at(0) : undefined
    const inner = value.slice(1, -1)
    if (quote === '"') settings.set(name, inner.replaceAll(/\\([\\"$`])/g, '$1'))
    else settings.set(name, quote === "'" ? inner : value)
  }
  return settings
}

/** Formats settings for systemd's EnvironmentFile and for `. FILE` in sh. */
export function writeEnvFile(settings: Settings): string {
  return [...settings].map(([name, value]) => `${name}=${quoted(name, value)}\n`).join('')
}

/**
 * Quotes a value for systemd's EnvironmentFile and sh: within double quotes both accept a backslash before
 * these characters. Errors: `usage` for a line break, which neither accepts.
 */
export function quoted(name: string, value: string): string {
  if (/[\0\r\n]/.test(value)) throw new RsmError('usage', `${name} cannot contain a line break`)
  return plainValue.test(value) ? value : `"${value.replaceAll(/[\\"$`]/g, '\\$&')}"`
}

export interface Program {
  /** Words before the command: an executable, or Node and rsm's script. */
  readonly command: readonly string[]
  /** File to copy into place first; null if it is there already. */
  readonly from: string | null
}

/** Path of the program in packages. */
export const packagedProgram = '/usr/bin/rsm'

/**
 * A single executable runs from `/usr/bin` (packages) or `PREFIX/bin`, and is copied there from elsewhere. An
 * npm installation runs from where it is.
 */
export function programFor(service: Service, prefix: string | undefined): Program {
  if (!isSingleFile) return { command: [process.execPath, ownPath('bin/run.js')], from: null }
  if (prefix === undefined && process.execPath === packagedProgram)
    return { command: [packagedProgram], from: null }
  const target = join(resolve(prefix ?? service.prefix), 'bin/rsm')
  const isThere = existsSync(target) && realpathSync(target) === realpathSync(process.execPath)
  return { command: [target], from: isThere ? null : '/proc/self/exe' }
}
