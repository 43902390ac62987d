/**
 * Puts values into the fields of a form that are there, by their names; into those in `filled` not again, so that one that comes later
 * is filled then, and what is typed stays.
 */
export function fillForm(
  form: HTMLFormElement,
  values: Readonly<Record<string, string>>,
  filled: WeakSet<Element>,
): void {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements.namedItem(name)
    if (!(field instanceof Element) || filled.has(field)) continue
    filled.add(field)
    if (field instanceof HTMLInputElement && field.type === 'checkbox') field.checked = value !== ''
    else if (
      field instanceof HTMLInputElement ||
      field instanceof HTMLTextAreaElement ||
      field instanceof HTMLSelectElement
    )
      field.value = value
  }
}
