import { existsSync, lstatSync, readdirSync, realpathSync, rmdirSync, rmSync, statSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { RsmError } from '../core/errors.ts'
import { lockFile } from '../disk/data-directory.ts'
import { readText } from './change.ts'
import { findProcess } from './port-holder.ts'
import { dataDirOf, packagedProgram, readEnvFile, type Service, systemService } from './service.ts'
import type { Systemd } from './systemd.ts'

export interface Found {
  /** Files and directories to remove, in order. */
  readonly paths: readonly string[]
  readonly hasUnit: boolean
  readonly dataDir: string
}

/** The executable of our unit, if it is where only an installation puts it. */
function programOf(service: Service): string | null {
  const start = (readText(service.unitFile) ?? '').split('\n').find((line) => line.startsWith('ExecStart='))
  const [program = ''] = (start ?? '').slice('ExecStart='.length).replaceAll('"', '').split(' ')
  if (!program.endsWith('/bin/rsm')) return null
  return program === packagedProgram ? null : program
}

/** Removes data only with `removeData`, because an installation may not have created its directory. */
export function findInstalled(service: Service, removeData: boolean): Found {
  const { unitFile, dropInFile, envFile, tokenFile, name } = service
  const dataDir = dataDirOf(service, readEnvFile(readText(envFile) ?? ''))
  const program = programOf(service)
  // The other service of this machine may run from the same file.
  const other = service.isUsers ? null : programOf(systemService(name === 'agent' ? 'server' : 'agent'))
  const isOurs =
    program !== null && program !== other && lstatSync(program, { throwIfNoEntry: false })?.isFile() === true
  // Data first, so that an interrupted run can be repeated with the same settings.
  const paths = [...(removeData ? [dataDir] : []), unitFile, dropInFile, tokenFile, envFile]
  if (isOurs) paths.push(program)
  const there = paths.filter((path) => existsSync(path))
  return { paths: there, hasUnit: existsSync(unitFile), dataDir }
}

/** Whether a process shares our root: the same path in a container is another file. */
function sharesFiles(pid: number): boolean {
  const [its, ours] = [statSync(`/proc/${pid}/root`), statSync('/')]
  return its.dev === ours.dev && its.ino === ours.ino
}

/** Matches a command line, or an agent's process title. Its terminals have another title, and end with it. */
const isService = /^\S+( -\S+)* (server|agent run|quickstart)\b/

const toStop = 'remove whatever starts it at boot (crontab, init system), then run this again'

/**
 * Fails while a process uses the data or runs the program, even if the lock file is gone. `own`: the process
 * that systemd will stop, or 0; its child release ends with it. Errors: `conflict`.
 */
function refuseRunning({ unit }: Service, { paths, dataDir }: Found, own: number): void {
  const directory = existsSync(dataDir) ? realpathSync(dataDir) : dataDir
  const lock = join(directory, 'lock')
  const goes = paths.includes(dataDir)
  const isData = (file: string) =>
    file === lock || file === `${lock} (deleted)` || (goes && file.startsWith(`${directory}/`))
  const running = findProcess(
    ({ pid, parent, files, exe, argv }) =>
      pid !== process.pid &&
      pid !== own &&
      !(own > 0 && parent === own && files.includes(lock)) &&
      (files.some(isData) || (paths.includes(exe) && isService.test(argv.join(' ')))) &&
      sharesFiles(pid),
  )
  if (running === null) return
  throw new RsmError('conflict', `${unit} is in use by ${running.name}: nothing was removed`, {
    hint: `stop it first: kill ${running.pid}; ${toStop}`,
  })
}

/** Prevents processes from starting on the data. Errors: `conflict`, with the process that uses it. */
async function lockData(service: Service, found: Found): Promise<FileHandle | null> {
  refuseRunning(service, found, 0)
  const { dataDir, paths } = found
  const lock = join(dataDir, 'lock')
  // A lock file of root would keep the owner of the data from using it again.
  if (!existsSync(paths.includes(dataDir) ? dataDir : lock)) return null
  return lockFile(lock, `data directory ${dataDir}`).catch((error: unknown) => {
    const { code, message } = error as NodeJS.ErrnoException
    if (error instanceof RsmError && code !== 'conflict') throw error
    throw new RsmError(
      'conflict',
      error instanceof RsmError
        ? `${service.unit} still runs: ${message}`
        : `cannot tell whether ${service.unit} still runs: ${message}`,
      { hint: `nothing was removed; stop that process, ${toStop}`, cause: error },
    )
  })
}

function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    throw new RsmError('unavailable', `cannot remove ${path}: ${(error as Error).message}`, {
      hint: 'remove it by hand, and run this again',
      cause: error,
    })
  }
}

/** Removes the lock last, so that no process starts on partial data; keeps a possible mount point. */
function empty(dataDir: string): void {
  for (const name of readdirSync(dataDir)) if (name !== 'lock') remove(join(dataDir, name))
  remove(join(dataDir, 'lock'))
}

/** Errors: `conflict` if a process runs that systemd does not stop; nothing is removed then. */
export async function removeInstalled(
  service: Service,
  systemd: Systemd | null,
  found: Found,
): Promise<void> {
  const { unit } = service
  const pid = await systemd?.ctl('show', '-p', 'MainPID', '--value', unit).catch(() => '')
  const own = Number(pid ?? 0)
  refuseRunning(service, found, own)
  let dataLock = own === 0 ? await lockData(service, found) : null
  try {
    // Without a unit there is nothing to disable.
    await systemd?.ctl('disable', '--now', '--quiet', unit).catch((error: unknown) => {
      if (found.hasUnit) throw error
    })
    dataLock ??= await lockData(service, found)
    for (const path of found.paths)
      if (path === found.dataDir) empty(path)
      else remove(path)
  } finally {
    await dataLock?.close()
  }
  const directories = [dirname(service.dropInFile), service.configDir, dirname(service.dataDir)]
  for (const path of found.paths.includes(found.dataDir) ? [found.dataDir, ...directories] : directories)
    try {
      rmdirSync(path)
    } catch {
      // Not empty, or a mount point.
    }
  await systemd?.ctl('daemon-reload')
}
