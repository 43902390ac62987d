import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

const sea = process.getBuiltinModule('node:sea')

/** Whether rsm is one executable that holds Node and all of rsm's files. */
export const isSingleFile: boolean = sea.isSea()

let root: string | undefined

/** Above this file, which lies at another depth in each bundle. */
function packageRoot(): string {
  let directory: string = import.meta.dirname
  while (!existsSync(join(directory, 'package.json')) && directory !== '/') directory = dirname(directory)
  return directory
}

/** Where a file of rsm lies, by its path within the package; of no use in a single file. */
export function ownPath(path: string): string {
  root ??= packageRoot()
  return join(root, path)
}

/** Whether rsm was built with this file. */
export function hasOwnFile(path: string): boolean {
  if (!isSingleFile) return existsSync(ownPath(path))
  try {
    return (sea.getRawAsset(path) as ArrayBuffer).byteLength > 0
  } catch {
    return false
  }
}

/** A file that comes with rsm, by its path within the package: `package.json`, `dist/web/main.js`. */
export function ownFile(path: string): Buffer {
  return isSingleFile ? Buffer.from(sea.getRawAsset(path) as ArrayBuffer) : readFileSync(ownPath(path))
}

/** The same as text. */
export const ownText = (path: string): string => ownFile(path).toString('utf8')

/** What package.json says of rsm. */
export const ownPackage = (): OwnPackage => JSON.parse(ownText('package.json')) as OwnPackage

export interface OwnPackage {
  readonly name: string
  readonly version: string
  /** Of a build that takes upgrades: base64 of the 32 bytes of an Ed25519 public key. */
  readonly releaseKey?: string
  readonly oclif: { readonly topics: Record<string, { readonly description: string } | undefined> }
}

/**
 * The one file that rsm runs from; undefined where that is Node with a program. The path by which it was started may be
 * another release's by now.
 */
export function ownExecutable(): string | undefined {
  return isSingleFile ? '/proc/self/exe' : undefined
}
