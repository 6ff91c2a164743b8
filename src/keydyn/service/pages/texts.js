// Texts to copy, in several languages: three or more to enrol with, sixty to eighty keystrokes each, and longer
// ones for recognition. With "My own words", people write something of their own instead.

export const LANGUAGES = { en: "English", de: "Deutsch", es: "Español", fr: "Français", own: "My own words" };
/** The keystrokes asked for when people write something of their own instead of a text. */
export const OWN = { enrol: 70, recognise: 100 };

const TEXTS = {
  en: {
    enrol: [
      "The morning bus was late again, so we walked along the river to work.",
      "She keeps three small stones on her desk and never says where they are from.",
      "Most of the garden is in shade, but tomatoes do well by the south wall.",
      "If it rains on Sunday we can stay in and finish the puzzle on the table.",
      "He wrote the number down twice and still managed to call the wrong house.",
    ],
    recognise: [
      "There is a light in the old station, though no train has stopped there for years. We should go and see.",
      "When the shop on the corner closed, everybody said they had always meant to go there more often.",
      "Bring a warm coat and something to read, because the boat takes longer than they tell you.",
      "My brother learned to bake bread last winter, and now he talks about nothing else at dinner.",
      "They painted the door green in spring, then white in summer, and nobody could say which was better.",
      "The second half of the film was better than the first, but by then most people had gone home.",
    ],
  },
  de: {
    enrol: [
      "Der Bus kam wieder zu spät, also gingen wir am Fluss entlang zur Arbeit.",
      "Auf ihrem Tisch liegen drei kleine Steine, und niemand weiß, woher sie sind.",
      "Der Garten liegt fast ganz im Schatten, nur an der Mauer reifen Tomaten.",
      "Wenn es am Sonntag regnet, bleiben wir hier und spielen bis zum Abend.",
      "Er schrieb die Nummer zweimal auf und rief trotzdem im falschen Haus an.",
    ],
    recognise: [
      "Im alten Bahnhof brennt ein Licht, obwohl dort seit Jahren kein Zug mehr hält. Wir sollten nachsehen.",
      "Als der Laden an der Ecke schloss, sagten alle, sie hätten dort öfter einkaufen wollen.",
      "Nimm eine warme Jacke und etwas zum Lesen mit, denn das Schiff braucht länger, als sie behaupten.",
      "Mein Bruder hat im Winter gelernt, Brot zu backen, und redet beim Essen von nichts anderem mehr.",
    ],
  },
  es: {
    enrol: [
      "El autobús llegó tarde otra vez, así que fuimos andando por el río.",
      "Guarda tres piedras pequeñas en la mesa y nunca dice de dónde son.",
      "Casi todo el jardín está a la sombra, pero hay tomates junto al muro.",
      "Si llueve el domingo nos quedamos en casa y jugamos hasta la noche.",
      "Apuntó el número dos veces y aun así llamó a la casa equivocada.",
    ],
    recognise: [
      "Hay una luz en la vieja estación, aunque ningún tren para allí desde hace años. Vamos a ver qué es.",
      "Cuando cerró la tienda de la esquina, todos dijeron que siempre habían querido ir más a menudo.",
      "Lleva un abrigo y algo para leer, porque el barco tarda más de lo que te dicen en el puerto.",
      "Mi hermano aprendió a hacer pan este invierno y ahora no habla de otra cosa durante la cena.",
    ],
  },
  fr: {
    enrol: [
      "Le bus avait encore du retard, alors nous avons marché le long du fleuve.",
      "Elle garde trois petites pierres sur son bureau sans dire d'où elles viennent.",
      "Presque tout le jardin est à l'ombre, mais les tomates aiment ce vieux mur.",
      "S'il pleut dimanche, nous resterons ici et nous jouerons jusqu'au soir.",
      "Il a noté le numéro deux fois et a quand même appelé la mauvaise maison.",
    ],
    recognise: [
      "Il y a une lumière dans la vieille gare, mais aucun train n'y passe depuis des années. Allons voir.",
      "Quand le magasin du coin a fermé, tout le monde a dit qu'il aurait voulu y aller plus souvent.",
      "Prends un manteau chaud et de quoi lire, car le bateau met plus de temps qu'on ne le dit.",
      "Mon frère a appris à faire du pain cet hiver, et il ne parle plus que de cela pendant le dîner.",
    ],
  },
};

const LANGUAGE = "keydyn.language";

/** The language of the texts: the one chosen in this browser, or else the browser's own. */
export function language() {
  const known = [localStorage.getItem(LANGUAGE), ...navigator.languages.map((each) => each.slice(0, 2))];
  return known.find((each) => Object.hasOwn(LANGUAGES, each ?? "")) ?? "en";
}

export function choose(chosen) {
  localStorage.setItem(LANGUAGE, chosen);
}

/** The text with this number to "enrol" or "recognise" by, starting over after the last; null for own words. */
export function textFor(purpose, number) {
  const texts = TEXTS[language()]?.[purpose];
  return texts ? texts[number % texts.length] : null;
}
