import { chmod, cp, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { basename, join, resolve } from 'node:path'

/** Installs this build as another version at `prefix`. */
export async function installVersion(prefix: string, version: string): Promise<void> {
  await mkdir(join(prefix, 'dist'), { recursive: true })
  await cp(resolve('bin'), join(prefix, 'bin'), { recursive: true })
  for (const part of ['dist/src', 'dist/native'])
    await cp(resolve(part), join(prefix, part), { recursive: true })
  await cp(resolve('oclif.manifest.json'), join(prefix, 'oclif.manifest.json'))
  for (const part of ['node_modules', 'packaging', 'docs', 'dist/web', 'dist/docs'])
    await symlink(resolve(part), join(prefix, part))
  const description = JSON.parse(await readFile('package.json', 'utf8')) as object
  await writeFile(join(prefix, 'package.json'), JSON.stringify({ ...description, version }))
}

/** One file in `root` that starts the installation at `prefix`, as an executable of rsm does. */
export const executableOf = (root: string, prefix: string): Promise<string> =>
  script(join(root, `rsm-${basename(prefix)}`), `exec ${process.execPath} ${join(prefix, 'bin/run.js')} "$@"`)

/** Writes an executable sh script with this text. */
export async function script(path: string, text: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\n${text}\n`)
  await chmod(path, 0o755)
  return path
}
