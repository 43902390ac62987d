import { isSingleFile } from './own-files.ts'

/**
 * The one file that rsm runs from; undefined where that is Node with a program. The path by which it was started may be
 * another release's by now.
 */
export function ownExecutable(): string | undefined {
  return isSingleFile ? '/proc/self/exe' : undefined
}
