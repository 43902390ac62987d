import { ownPackage } from './own-files.ts'

/** Read at the start: once root has become the owner of a data directory, rsm's own files may be closed to it. */
const { version } = ownPackage()

/** The version of this program, from its package. */
export const serverVersion = (): string => version
