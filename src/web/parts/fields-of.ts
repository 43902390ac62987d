/** The text of a form's fields by their names; empty where there is none. */
export function fieldsOf(form: HTMLFormElement): (name: string) => string {
  const data = new FormData(form)
  return (name) => {
    const value = data.get(name)
    return typeof value === 'string' ? value : ''
  }
}

/** The file that is chosen in a field; undefined where none is, and where the form has no such field. */
export function fileIn(form: HTMLFormElement, name: string): File | undefined {
  const value = new FormData(form).get(name)
  // An empty field has a file without a name.
  return value instanceof File && value.name !== '' ? value : undefined
}
