// Texts to copy: plain English, sixty to eighty keystrokes each.

export const TO_ENROL = [
  "The morning bus was late again, so we walked along the river to work.",
  "She keeps three small stones on her desk and never says where they are from.",
  "Most of the garden is in shade, but tomatoes do well by the south wall.",
  "If it rains on Sunday we can stay in and finish the puzzle on the table.",
  "He wrote the number down twice and still managed to call the wrong house.",
];

const TO_VERIFY = [
  "There is a light in the old station, though no train has stopped there for years. We should go and see.",
  "When the shop on the corner closed, everybody said they had always meant to go there more often.",
  "Bring a warm coat and something to read, because the boat takes longer than they tell you.",
  "My brother learned to bake bread last winter, and now he talks about nothing else at dinner.",
  "They painted the door green in spring, then white in summer, and nobody could say which was better.",
  "The second half of the film was better than the first, but by then most people had gone home.",
];

/** Another one each time, in turn, from this one on. */
export class Texts {
  #next;

  constructor(first) {
    this.#next = first;
  }

  next() {
    const text = TO_VERIFY[this.#next % TO_VERIFY.length];
    this.#next += 1;
    return text;
  }
}
