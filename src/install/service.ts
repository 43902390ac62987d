import { homedir } from 'node:os'
import { join } from 'node:path'
import { RsmError } from '../core/errors.ts'

const dataVariables = { server: 'RSM_DATA_DIR', agent: 'RSM_AGENT_DATA_DIR' }

const plainValue = /^[\w./:@%+,=-]*$/

type ServiceName = 'server' | 'agent'

/** Where a service of rsm keeps what (contract §10). */
export interface Service {
  readonly name: ServiceName
  /** Of this user alone, without root. */
  readonly isUsers: boolean
  /** `rsm-agent`. */
  readonly unit: string
  readonly unitFile: string
  /** The same unit where a package has brought it. */
  readonly packagedUnitFile: string
  /** What this host adds to the unit, whoever brought that. */
  readonly dropInFile: string
  readonly configDir: string
  readonly envFile: string
  /** An enrollment token, until it is used. */
  readonly tokenFile: string
  readonly dataDir: string
  /** The setting that names another. */
  readonly dataVariable: string
  /** Where an executable goes that lies somewhere else. */
  readonly prefix: string
}

/** Settings of a service, by the name of their variable. */
export type Settings = ReadonlyMap<string, string>

/** `root` stands before every path; tests have one. */
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

/** `base` says where files of a kind belong to this user. */
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

/** Where systemd looks for a unit, in a directory of units. */
const unitFiles = (unit: string, directory: string, packaged: string) => {
  const unitFile = join(directory, `${unit}.service`)
  return {
    unitFile,
    packagedUnitFile: join(packaged, `${unit}.service`),
    dropInFile: join(`${unitFile}.d`, 'rsm.conf'),
  }
}

/** Where it keeps its data with these settings. */
export const dataDirOf = ({ dataVariable, dataDir }: Service, settings: Settings): string =>
  settings.get(dataVariable) ?? dataDir

/** What `writeEnvFile` wrote, and what people write by hand: comments and quotes of either kind. */
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

/** The file of these settings, for systemd's EnvironmentFile and for `. FILE` of sh. */
export function writeEnvFile(settings: Settings): string {
  return [...settings].map(([name, value]) => `${name}=${quoted(name, value)}\n`).join('')
}

/**
 * A value as systemd's EnvironmentFile and sh both read it: within double quotes both take a backslash before these.
 * Errors: `usage` for one with a line end, which neither takes.
 */
export function quoted(name: string, value: string): string {
  if (/[\0\r\n]/.test(value)) throw new RsmError('usage', `${name} can't hold a line end`)
  return plainValue.test(value) ? value : `"${value.replaceAll(/[\\"$`]/g, '\\$&')}"`
}
