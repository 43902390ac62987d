import { existsSync, lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs'
import { basename, dirname } from 'node:path'
import { readEnvFile } from './env-file.ts'
import { readText } from './read-text.ts'
import { type Service, systemService } from './service.ts'
import type { Systemd } from './systemd.ts'

/** What an uninstallation finds. */
export interface Found {
  /** Files and directories that it removes, in order. */
  readonly paths: readonly string[]
  readonly hasUnit: boolean
}

/** The executable that a unit of ours starts, if it lies where only an installation puts it. */
function programOf(service: Service): string | null {
  const start = (readText(service.unitFile) ?? '').split('\n').find((line) => line.startsWith('ExecStart='))
  const [program = ''] = (start ?? '').slice('ExecStart='.length).replaceAll('"', '').split(' ')
  if (!program.endsWith('/bin/rsm')) return null
  return program === '/usr/bin/rsm' ? null : program
}

export function findInstalled(service: Service, keepData: boolean): Found {
  const { unitFile, envFile, tokenFile, name } = service
  const variable = name === 'agent' ? 'RSM_AGENT_DATA_DIR' : 'RSM_DATA_DIR'
  const dataDir = readEnvFile(readText(envFile) ?? '').get(variable) ?? service.dataDir
  const program = programOf(service)
  // The other service of this machine may run from the same file.
  const other = service.isUsers ? null : programOf(systemService(name === 'agent' ? 'server' : 'agent'))
  const paths = [unitFile, tokenFile, envFile]
  if (!keepData) paths.push(dataDir)
  if (
    program !== null &&
    program !== other &&
    lstatSync(program, { throwIfNoEntry: false })?.isFile() === true
  )
    paths.push(program)
  const there = paths.filter((path) => existsSync(path))
  return { paths: there, hasUnit: existsSync(unitFile) }
}

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
  for (const path of found.paths) rmSync(path, { recursive: true, force: true })
  // Theirs who keep something else in them.
  for (const directory of [service.configDir, dirname(service.dataDir)])
    if (basename(directory) === 'rsm' && existsSync(directory) && readdirSync(directory).length === 0)
      rmdirSync(directory)
  await systemd?.ctl('daemon-reload')
}
