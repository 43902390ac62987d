import { execFileSync, spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '../../../src/server/log.ts'
import { createDatabase } from '../../../src/server/postgres/connection/database.ts'
import { oldestVersion } from '../../../src/server/postgres/connection/primary.ts'
import { migrate } from '../../../src/server/postgres/schema/migrations.ts'
import { patientAddress } from './patient-address.ts'
import { onSteadyPort } from './steady-port.ts'

/** Debian keeps the programs of each version apart; the newest, where there are several. */
function findPrograms(): string | null {
  const given = process.env.RSM_TEST_PG
  if (given !== undefined && given !== 'required') return given
  const versions = '/usr/lib/postgresql'
  const found = existsSync(versions)
    ? readdirSync(versions)
        .filter((version) => Number(version) >= oldestVersion)
        .toSorted((a, b) => Number(b) - Number(a))
        .map((version) => join(versions, version, 'bin'))
    : []
  return found.find((directory) => existsSync(join(directory, 'initdb'))) ?? null
}

/** Where PostgreSQL's programs are; null where it is not installed. */
export const programs: string | null = findPrograms()
/** Why tests are skipped then, or fail where RSM_TEST_PG is `required`. */
export const missing = `PostgreSQL ${oldestVersion} or newer is missing: apt install postgresql`
if (programs === null && process.env.RSM_TEST_PG === 'required') throw new Error(missing)

/** PostgreSQL does not run as root. */
const asUser = process.getuid?.() === 0 ? ['--reuid=postgres', '--regid=postgres', '--init-groups'] : null

function command(program: string, args: readonly string[]): [string, string[]] {
  const path = join(programs ?? '', program)
  return asUser ? ['setpriv', [...asUser, path, ...args]] : [path, [...args]]
}

function run(program: string, args: readonly string[]): string {
  const [file, all] = command(program, args)
  const { status, stderr, stdout } = spawnSync(file, all, { encoding: 'utf8', cwd: '/' })
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${stderr}${stdout}`)
  return stdout
}

/** An empty directory of data, made once for all files of tests on this machine. */
function blank(): string {
  const version = (programs ?? '').replaceAll(/\W+/g, '-')
  const kept = join(tmpdir(), `rsm-test-postgres${version}-${process.getuid?.() ?? 0}`)
  if (existsSync(kept)) return kept
  const made = mkdtempSync(join(tmpdir(), 'rsm-initdb-'))
  try {
    own(made)
    run('initdb', [
      '-D',
      join(made, 'data'),
      '-U',
      'rsm',
      '-A',
      'trust',
      '--no-sync',
      '-E',
      'UTF8',
      '--locale=C.UTF-8',
    ])
    renameSync(made, kept)
  } catch (error) {
    rmSync(made, { recursive: true, force: true })
    // Another file of tests was faster.
    if (!existsSync(kept)) throw error
  }
  return kept
}

function own(directory: string): void {
  if (asUser) execFileSync('chown', ['-R', 'postgres:postgres', directory])
}

/** A PostgreSQL that runs, or can be started again on the same data and port. */
interface Instance {
  readonly port: number
  readonly dataDirectory: string
  start(): void
  /** `immediate` is a crash. */
  stop(mode: 'fast' | 'immediate'): void
}

export interface Postgres extends Instance {
  /** Of a database of its own, empty or with the schema. */
  database(how?: { migrated: boolean }): Promise<string>
}

export interface Standby extends Instance {
  /** Makes it the primary; resolves when it takes writes. */
  promote(): void
}

/** Settings that make it small and quick; nothing here survives a power cut, or has to. */
const settings = {
  listen_addresses: '127.0.0.1',
  fsync: 'off',
  shared_buffers: '32MB',
  max_connections: '400',
  unix_socket_directories: '',
  max_wal_size: '256MB',
}

type Teardown = (end: () => void) => void
type Settings = Readonly<Record<string, string>>

/** Starts what `fill` has put into a new directory. */
async function startInstance(
  teardown: Teardown,
  more: Settings,
  fill: (data: string) => void,
): Promise<Instance> {
  const directory = mkdtempSync(join(tmpdir(), 'rsm-postgres-'))
  const data = join(directory, 'data')
  const control = (...args: string[]) => run('pg_ctl', ['-D', data, '-s', '-w', ...args])
  const stop = (mode: string) => control('-m', mode, 'stop')
  teardown(() => {
    try {
      stop('immediate')
    } catch {
      // The test has stopped it, or it never started.
    }
    rmSync(directory, { recursive: true, force: true })
  })
  own(directory)
  fill(data)
  own(directory)
  execFileSync('chmod', ['700', data])
  return onSteadyPort(async (port) => {
    const options = Object.entries({ ...settings, ...more, port: String(port) })
      .map(([name, value]) => `-c ${name}='${value}'`)
      .join(' ')
    const start = () => control('-l', join(directory, 'log'), '-o', options, 'start')
    start()
    return { port, dataDirectory: data, start, stop }
  })
}

/** A PostgreSQL of this file of tests, which ends with `teardown`; `more`: further settings. */
export function startPostgres(teardown: Teardown, more: Settings = {}): Promise<Postgres> {
  const started = start(teardown, more)
  // A file of tests starts it before any of them is skipped.
  if (programs === null) started.catch(() => undefined)
  return started
}

async function start(teardown: Teardown, more: Settings): Promise<Postgres> {
  if (programs === null) throw new Error(missing)
  const instance = await startInstance(teardown, more, (data) =>
    cpSync(join(blank(), 'data'), data, { recursive: true, verbatimSymlinks: true }),
  )
  let count = 0
  let template: Promise<string> | null = null
  /** One after the other: PostgreSQL copies one template at a time, and a statement that waits for others runs into its timeout. */
  let creating: Promise<void> = Promise.resolve()
  const url = (database: string) => urlOf([instance], database)

  async function makeTemplate(): Promise<string> {
    await asked(url('postgres'), 'create database rsm_template')
    const client = createDatabase(patientAddress(url('rsm_template')), 'test', createLog('ERROR'))
    await migrate(client)
    await client.close()
    return 'rsm_template'
  }
  return {
    ...instance,
    async database({ migrated } = { migrated: true }) {
      const name = `rsm_${++count}`
      template ??= migrated ? makeTemplate() : null
      const from = migrated ? ` template ${await template}` : ''
      creating = creating
        .catch(() => undefined)
        .then(() => asked(url('postgres'), `create database ${name}${from}`))
      await creating
      return url(name)
    },
  }
}

/** The store of a server that finds its primary among these. */
export const urlOf = (instances: readonly Pick<Instance, 'port'>[], database: string): string =>
  `postgres://rsm@${instances.map(({ port }) => `127.0.0.1:${port}`).join(',')}/${database}`

async function asked(url: string, text: string): Promise<void> {
  const client = createDatabase(patientAddress(url), 'test', createLog('ERROR'))
  await client.ask('api', text)
  await client.close()
}

/**
 * A standby that follows `primary` from here on. Where it is synchronous, no commit of the primary is acknowledged before the
 * standby has it, from the end of this call on.
 */
export async function startStandby(
  teardown: Teardown,
  primary: Postgres,
  { synchronous }: { synchronous: boolean },
): Promise<Standby> {
  const from = `host=127.0.0.1 port=${primary.port} user=rsm`
  const instance = await startInstance(
    teardown,
    { primary_conninfo: `${from} application_name=standby` },
    (data) => run('pg_basebackup', ['-D', data, '-R', '-X', 'stream', '-c', 'fast', '-d', from]),
  )
  if (synchronous) {
    const postgres = urlOf([primary], 'postgres')
    await asked(postgres, "alter system set synchronous_standby_names = 'standby'")
    await asked(postgres, 'select pg_reload_conf()')
  }
  return {
    ...instance,
    promote: () => run('pg_ctl', ['-D', instance.dataDirectory, '-s', '-w', 'promote']),
  }
}

/** A database as statements that fill another one, whoever its user is. */
export const dumped = (url: string): string =>
  run('pg_dump', ['--inserts', '--no-owner', '--no-comments', '-d', url])
    // Commands of psql alone, which newer ones write.
    .replaceAll(/^\\\S.*\n/gm, '')

/** Ends at the end of the process: for the one PostgreSQL of a file of tests. */
export function atExit(end: () => void): void {
  process.once('exit', end)
}
