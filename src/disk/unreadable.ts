/** Why a file could not be read, in plain words; `reader` is who tried. */
export function whyUnreadable(error: unknown, reader = 'you'): string {
  const plainly: Readonly<Record<string, string>> = {
    ENOENT: 'there is no such file',
    EACCES: `${reader} may not read it`,
    EISDIR: 'it is a directory',
  }
  const { code = '', message } = error as NodeJS.ErrnoException
  return plainly[code] ?? message
}
