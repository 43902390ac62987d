interface ChoiceProps<T extends string> {
  /** What is chosen, for screen readers. */
  label: string
  /** Each with what its button says. */
  options: readonly (readonly [value: T, label: string])[]
  chosen: T
  onChoose: (value: T) => void
}

/** One of a few, as buttons side by side. */
export function Choice<T extends string>({ label, options, chosen, onChoose }: ChoiceProps<T>) {
  return (
    <div class="choice" role="group" aria-label={label}>
      {options.map(([value, text]) => (
        <button key={value} type="button" aria-pressed={value === chosen} onClick={() => onChoose(value)}>
          {text}
        </button>
      ))}
    </div>
  )
}
