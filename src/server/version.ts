import { ownPackage } from '../disk/own-files.ts'

/** The version of this program, from its package. */
export const serverVersion = (): string => ownPackage().version
