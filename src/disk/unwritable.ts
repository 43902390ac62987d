const plainly: Readonly<Record<string, string>> = {
  EACCES: 'you may not',
  EPERM: 'you may not',
  EEXIST: 'it is not a directory',
  ENOENT: 'no directory can be made there',
  ENOTDIR: 'a part of this path is a file',
  EROFS: 'what is mounted there is read-only',
  ENOSPC: 'the disk is full',
  EDQUOT: 'the quota of the disk is used up',
  EFBIG: 'the file has become too large',
  EIO: 'the device reports an error',
}

/** Why something could not be written, in plain words. */
export function whyUnwritable(error: unknown): string {
  const { code = '', message } = error as NodeJS.ErrnoException
  return plainly[code] ?? message
}
