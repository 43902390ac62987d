import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { lockFile } from '../disk/lock.ts'
import { readEnvFile } from './env-file.ts'
import { packagedProgram } from './program.ts'
import { readText } from './read-text.ts'
import { dataDirOf, type Service, systemService } from './service.ts'
import type { Systemd } from './systemd.ts'

/** What an uninstallation finds. */
export interface Found {
  /** Files and directories that it removes, in order. */
  readonly paths: readonly string[]
  readonly hasUnit: boolean
  readonly dataDir: string
}

/** The executable that a unit of ours starts, if it lies where only an installation puts it. */
function programOf(service: Service): string | null {
  const start = (readText(service.unitFile) ?? '').split('\n').find((line) => line.startsWith('ExecStart='))
  const [program = ''] = (start ?? '').slice('ExecStart='.length).replaceAll('"', '').split(' ')
  if (!program.endsWith('/bin/rsm')) return null
  return program === packagedProgram ? null : program
}

export function findInstalled(service: Service, keepData: boolean): Found {
  const { unitFile, dropInFile, envFile, tokenFile, name } = service
  const dataDir = dataDirOf(service, readEnvFile(readText(envFile) ?? ''))
  const program = programOf(service)
  // The other service of this machine may run from the same file.
  const other = service.isUsers ? null : programOf(systemService(name === 'agent' ? 'server' : 'agent'))
  const paths = [unitFile, dropInFile, tokenFile, envFile]
  if (!keepData) paths.push(dataDir)
  if (
    program !== null &&
    program !== other &&
    lstatSync(program, { throwIfNoEntry: false })?.isFile() === true
  )
    paths.push(program)
  const there = paths.filter((path) => existsSync(path))
  return { paths: there, hasUnit: existsSync(unitFile), dataDir }
}

/** Nobody starts on the data while it is held. Errors: `conflict`, which names the process that runs on it. */
async function holdData({ unit }: Service, dataDir: string) {
  const lock = join(dataDir, 'lock')
  if (!existsSync(lock)) return null
  return lockFile(lock, `data directory ${dataDir}`).catch((error: unknown) => {
    if (!(error instanceof RsmError) || error.code !== 'conflict') throw error
    throw new RsmError('conflict', `${unit} still runs: ${error.message}`, {
      hint: 'end that process, and take out what starts it at boot (crontab, init system); then run this again',
      cause: error,
    })
  })
}

/** Errors: `conflict` where the service runs and systemd does not stop it: nothing has been removed. */
export async function removeInstalled(
  service: Service,
  systemd: Systemd | null,
  found: Found,
): Promise<void> {
  if (systemd !== null) {
    // Without a unit there is nothing to disable.
    await systemd.ctl('disable', '--now', '--quiet', service.unit).catch((error: unknown) => {
      if (found.hasUnit) throw error
    })
  }
  const held = await holdData(service, found.dataDir)
  try {
    for (const path of found.paths) rmSync(path, { recursive: true, force: true })
  } finally {
    await held?.close()
  }
  // Theirs who keep something else in them.
  for (const directory of [dirname(service.dropInFile), service.configDir, dirname(service.dataDir)])
    if (existsSync(directory) && readdirSync(directory).length === 0) rmdirSync(directory)
  await systemd?.ctl('daemon-reload')
}
