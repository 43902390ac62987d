import { homedir } from 'node:os'
import { join } from 'node:path'

export type ServiceName = 'server' | 'agent'

/** Where a service of rsm keeps what (contract §10). */
export interface Service {
  readonly name: ServiceName
  /** Of this user alone, without root. */
  readonly isUsers: boolean
  /** `rsm-agent`. */
  readonly unit: string
  readonly unitFile: string
  readonly configDir: string
  readonly envFile: string
  /** An enrollment token, until it is used. */
  readonly tokenFile: string
  readonly dataDir: string
  /** Where an executable goes that lies somewhere else. */
  readonly prefix: string
}

/** The unit that a package brings. */
export const packagedUnit = (unit: string): string => `/usr/lib/systemd/system/${unit}.service`

/** `root` stands before every path; tests have one. */
export function systemService(name: ServiceName, root = ''): Service {
  const unit = `rsm-${name}`
  const configDir = `${root}/etc/rsm`
  return {
    name,
    isUsers: false,
    unit,
    unitFile: `${root}/etc/systemd/system/${unit}.service`,
    configDir,
    envFile: join(configDir, `${name}.env`),
    tokenFile: join(configDir, `${name}.token`),
    dataDir: `${root}/var/lib/rsm/${name}`,
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
    unitFile: join(base('CONFIG'), 'systemd/user', `${unit}.service`),
    configDir,
    envFile: join(configDir, `${name}.env`),
    tokenFile: join(configDir, `${name}.token`),
    dataDir: join(base('STATE'), 'rsm', name),
    prefix: join(homedir(), '.local'),
  }
}
